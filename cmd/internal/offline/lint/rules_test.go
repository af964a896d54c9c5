// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/policyrules"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/resourcenames"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/test/golden"
)

// then is the time at which certificates of testdata are checked.
var then = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// objects reads YAML documents. The line of an object is the number of its document.
func objects(t testing.TB, file string, data []byte) []Object {
	t.Helper()
	var out []Object
	for i, part := range bytes.Split(data, []byte("---\n")) {
		raw, err := yaml.YAMLToJSON(part)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var head struct {
			APIVersion, Kind string
			Metadata         struct {
				Name, Namespace     string
				Labels, Annotations map[string]string
			}
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, Object{
			APIVersion: head.APIVersion, Kind: head.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name,
			Labels: head.Metadata.Labels, Annotations: head.Metadata.Annotations, Raw: raw,
			At: func(string) (string, int) { return file, i + 1 },
		})
	}
	return out
}

// example is the archive of a rule: fail.yaml, its findings in want.txt, and pass.yaml.
func example(t testing.TB, rule string) *golden.Archive {
	t.Helper()
	return golden.Open(t, filepath.Join("testdata", "rules", rule+".txtar"))
}

func inventory(t testing.TB, of *golden.Archive, file string) *Inventory {
	t.Helper()
	in, err := ReadFiles(objects(t, file, of.File(file)))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// servedPaths are the paths of known webhooks, for rules that check them.
var servedPaths = map[string][]string{"check.hooks.example.com": {"/check"}, "c.x.y": {"/check"}}

// unnamedVariables stands in for the checks of PodDefaults, which package lint does not know.
func unnamedVariables(o *Object) (errs field.ErrorList) {
	var object struct {
		Spec struct{ Env []struct{ Name string } }
	}
	if err := json.Unmarshal(o.Raw, &object); err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	for i, v := range object.Spec.Env {
		if v.Name == "" {
			errs = append(errs, field.Required(field.NewPath("spec", "env").Index(i).Child("name"), "a variable has a name"))
		}
	}
	return errs
}

func TestPodDefaultsAreNotJudgedByAProgramThatDoesNotKnowThem(t *testing.T) {
	report := Run(inventory(t, example(t, "poddefault-refused"), "fail.yaml"), Options{Rules: []string{"poddefault-refused"}})
	if len(report.Findings) > 0 || len(report.Skipped) != 1 || len(report.Skipped[0].Objects) != 3 {
		t.Errorf("%+v", report)
	}
}

func TestPathsOfFieldsArePointers(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "spec": "/spec", "spec.env[0].name": "/spec/env/0/name", "spec.labels[example.com/a~b]": "/spec/labels/example.com~1a~0b", "spec.a[": "/spec/a/", "[x]": "/x",
	} {
		if got := pointerTo(path); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}

// knownResources are some of Kubernetes' resources.
func knownResources() *Resources {
	out := &Resources{ByGroup: map[string][]string{"": {"pods", "services"}, "apps": {"deployments"}, "kubeflow.org": {"poddefaults"}}}
	for gvr, kind := range map[string]string{
		"v1/pods": "Pod", "v1/configmaps": "ConfigMap", "v1/secrets": "Secret", "v1/services": "Service", "apps/v1/deployments": "Deployment", "autoscaling/v2/horizontalpodautoscalers": "HorizontalPodAutoscaler",
		"v1/nodes": "Node", "v1/namespaces": "Namespace", "rbac.authorization.k8s.io/v1/clusterroles": "ClusterRole", "coordination.k8s.io/v1/leases": "Lease",
	} {
		at := strings.LastIndex(gvr, "/")
		version, _ := schema.ParseGroupVersion(gvr[:at])
		resource := version.WithResource(gvr[at+1:])
		out.Versions = append(out.Versions, policyrules.Resource{GroupVersionResource: resource, Kind: kind, Namespaced: !resourcenames.ClusterScoped(resource.Group, resource.Resource)})
	}
	slices.SortFunc(out.Versions, func(a, b policyrules.Resource) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// TestEveryRuleHasAnExampleThatItIsAbout runs each rule on a bad and a good example.
func TestEveryRuleHasAnExampleThatItIsAbout(t *testing.T) {
	for _, rule := range Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			archive := example(t, rule.ID)
			options := Options{Now: then, Rules: []string{rule.ID}, Paths: servedPaths, PodDefault: unnamedVariables, Resources: knownResources()}
			report := Run(inventory(t, archive, "fail.yaml"), options)
			var got strings.Builder
			seen := map[Severity]bool{}
			for _, f := range report.Findings {
				seen[f.Severity] = true
				fmt.Fprintf(&got, "%d %s %s %s: %s\n", f.Line, f.Severity, f.Object, f.Webhook, f.Message)
			}
			for _, s := range report.Skipped {
				fmt.Fprintf(&got, "not checked: %s %v\n", s.Reason, s.Objects)
			}
			if strings.HasPrefix(rule.ID, "policy-") { // the same objects in a cluster, where all is known
				options.Release = release.Version{Minor: 36, Patch: 3}
				in, err := ReadCluster(objects(t, "fail.yaml", archive.File("fail.yaml")), nil)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("in a cluster:\n")
				for _, f := range Run(in, options).Findings {
					seen[f.Severity] = true
					fmt.Fprintf(&got, "%s %s: %s\n", f.Severity, f.Object, f.Message)
				}
			}
			archive.Equal(t, "want.txt", got.String())
			for _, severity := range Severities() {
				if seen[severity] != slices.Contains(rule.Severities, severity) {
					t.Errorf("findings of severity %s: %v, declared: %v", severity, seen[severity], rule.Severities)
				}
			}
			if good := Run(inventory(t, archive, "pass.yaml"), options); len(good.Findings) > 0 {
				t.Errorf("it finds something where nothing is wrong: %+v", good.Findings)
			}
		})
	}
}

func TestEveryRuleSaysWhatWhyAndWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	id := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, rule := range Rules() {
		if !id.MatchString(rule.ID) || seen[rule.ID] {
			t.Errorf("the ID %q", rule.ID)
		}
		seen[rule.ID] = true
		for _, text := range []string{rule.What, rule.Why, rule.Fix} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is not a sentence", rule.ID, text)
			}
		}
		if rule.Group == "" || rule.Source == "" || rule.check == nil || len(rule.Severities) == 0 {
			t.Errorf("%s lacks a group, a source or severities", rule.ID)
		}
		if explained := rule.Explain(); !strings.Contains(explained, rule.What) || !strings.Contains(explained, rule.Why) || !strings.Contains(explained, rule.Fix) {
			t.Errorf("%s is explained as\n%s", rule.ID, explained)
		}
	}
	files, err := os.ReadDir("testdata/rules")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !seen[strings.TrimSuffix(file.Name(), ".txtar")] {
			t.Errorf("testdata/rules/%s belongs to no rule", file.Name())
		}
	}
}
