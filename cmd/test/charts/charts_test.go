// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/test/golden"
	"github.com/sallyport-io/sallyport/test/lab"
)

// A project is a version of others' software that installs webhooks or policies.
type project struct {
	name        string
	module, sum string
	// chart is rendered by helm with flags, overlay by kustomize; manifests are a file or folder that is applied as it is.
	chart, overlay, manifests string
	flags                     []string
	// errors are the rules with findings of severity error, each of which is right.
	errors []string
}

var projects = []project{
	{name: "cert-manager", module: "github.com/cert-manager/cert-manager@v1.21.2", sum: "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=", chart: "deploy/charts/cert-manager", flags: []string{"--namespace", "cert-manager", "--set", "crds.enabled=true"}},
	// A key of its DaemonSet is there twice, which kubectl does not say.
	{name: "fluid", module: "github.com/fluid-cloudnative/fluid@v1.0.8", sum: "h1:sZEOFWo5N8r+RyyD9PyLB3GgjergRR4yKspn64dltS8=", chart: "charts/fluid/fluid", flags: []string{"--namespace", "fluid-system"}},
	{name: "gatekeeper", module: "github.com/open-policy-agent/gatekeeper/v3@v3.23.1", sum: "h1:njHTm0SJ6ZEhhEgmQTpJKTGQbc99fSs4hGiEp1OIKck=", manifests: "deploy/gatekeeper.yaml"},
	{name: "gateway-api", module: "sigs.k8s.io/gateway-api@v1.6.0", sum: "h1:735YBRj5NXFrOGX0GoSjwzUIzbz8kiEOfADsqHFmHgE=", manifests: "config/crd/standard"},
	{name: "jobset", module: "sigs.k8s.io/jobset@v0.12.0", sum: "h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ=", chart: "charts/jobset", flags: []string{"--namespace", "jobset-system"}},
	// Its webhook for pods is called for its own server, in a namespace that has the label.
	{name: "katib", module: "github.com/kubeflow/katib@v0.19.0", sum: "h1:uexj303nRkGtTFtTkY4McCt6J0TCtnerX3i3E7TRA5M=", overlay: "manifests/v1beta1/installs/katib-standalone", errors: []string{"wedge-self"}},
	{name: "keda", module: "github.com/kedacore/keda/v2@v2.21.0", sum: "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=", overlay: "config/default"},
	{name: "knative-serving", module: "knative.dev/serving@v0.51.0", sum: "h1:yN2Q7eYqJgoPfZkATjoBZyGbZ2P1Qhns9HIMU4mF+to=", manifests: "config/core"},
	{name: "kueue", module: "sigs.k8s.io/kueue@v0.17.0", sum: "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I=", chart: "charts/kueue", flags: []string{"--namespace", "kueue-system"}},
	{name: "metallb", module: "go.universe.tf/metallb@v0.16.2", sum: "h1:RCSAGoZmqcvTg0e56+Okbwz8iTuQVX30JpKX5mYEPUM=", manifests: "config/manifests/metallb-native.yaml"},
	{name: "training-operator", module: "github.com/kubeflow/training-operator@v1.8.1", sum: "h1:mVvoBSCInbMBX0gGSn4+Ihj3ycwoLO1iEAw+0qPhQfc=", overlay: "manifests/overlays/standalone"},
}

// TestFindingsInChartsOfOthersOnARealAPIServer pins what `lint` says, and sends to an API server what lint finds nothing wrong with.
func TestFindingsInChartsOfOthersOnARealAPIServer(t *testing.T) {
	t.Parallel()
	command := lab.Command(t, "cmd/sallyport")
	client := dynamic.NewForConfigOrDie(lab.APIServer(t))
	for _, p := range projects {
		t.Run(p.name, func(t *testing.T) {
			rendered := p.render(t)
			report := lint(t, command, rendered)
			golden.Equal(t, filepath.Join("testdata", p.name+".txt"), report.String())
			wrong := map[string]bool{} // objects with errors
			for _, f := range report.Findings {
				if f.Severity != "error" {
					continue
				}
				wrong[f.Object] = true
				if !slices.Contains(p.errors, f.Rule) {
					t.Errorf("%s of %s is none that is known to be right: %s", f.Rule, f.Object, f.Message)
				}
			}
			for _, object := range installed(rendered) {
				resource := schema.GroupVersionResource{Group: object.GroupVersionKind().Group, Version: object.GroupVersionKind().Version, Resource: clusterScoped[object.GetKind()]}
				_, err := client.Resource(resource).Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
				if name := object.GetKind() + "/" + object.GetName(); err != nil && !wrong[name] {
					t.Errorf("lint finds no error in %s; the API server does: %v", name, err)
				}
			}
		})
	}
}

// render returns a stream of YAML documents.
func (p project) render(t *testing.T) []byte {
	t.Helper()
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(output(t, "go", "mod", "download", "-json", p.module), &module); err != nil {
		t.Fatal(err)
	}
	if module.Sum != p.sum {
		t.Fatalf("%s has the sum %s, want %s", p.module, module.Sum, p.sum)
	}
	switch in := func(folder string) string { return filepath.Join(module.Dir, filepath.FromSlash(folder)) }; {
	case p.chart != "":
		return output(t, lab.Binary(t, "helm"), append([]string{"template", p.name, in(p.chart)}, p.flags...)...)
	case p.overlay != "":
		return output(t, lab.Binary(t, "kustomize"), "build", in(p.overlay))
	default:
		var out bytes.Buffer
		err := filepath.WalkDir(in(p.manifests), func(name string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(name)
			out.Write(append(text, "\n---\n"...))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
}

func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	return out
}

// findings are what lint prints as JSON.
type findings struct {
	Findings []struct{ Rule, Severity, Object, Message string }
	Errors   []string
}

func lint(t *testing.T, command string, rendered []byte) findings {
	t.Helper()
	run := exec.CommandContext(t.Context(), command, "lint", "-f", "-", "--severity", "info", "--output", "json")
	run.Stdin = bytes.NewReader(rendered)
	out, err := run.Output()
	var read findings
	if jsonErr := json.Unmarshal(out, &read); jsonErr != nil {
		t.Fatalf("%v, %v: %s", err, jsonErr, out)
	}
	return read
}

// String has a line for each finding. Those that differ in their webhook alone are counted.
func (f findings) String() string {
	var lines []string
	count := map[string]int{}
	for _, err := range f.Errors {
		lines = append(lines, "cannot be read: "+err)
	}
	for _, finding := range f.Findings {
		line := fmt.Sprintf("%s %s: %s: %s", finding.Severity, finding.Rule, finding.Object, finding.Message)
		if count[line]++; count[line] == 1 {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	var out strings.Builder
	for _, line := range lines {
		if n := count[line]; n > 1 {
			line += fmt.Sprintf(" (%d times)", n)
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// clusterScoped are the kinds that need no namespace, with their resources.
var clusterScoped = map[string]string{
	"MutatingWebhookConfiguration": "mutatingwebhookconfigurations", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
	"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
	"CustomResourceDefinition": "customresourcedefinitions", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
	"PriorityClass": "priorityclasses", "Namespace": "namespaces",
}

// installed returns the objects of those kinds.
func installed(rendered []byte) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+string(rendered), "\n---") {
		object := &unstructured.Unstructured{}
		if yaml.Unmarshal([]byte(document), &object.Object) == nil && clusterScoped[object.GetKind()] != "" {
			out = append(out, object)
		}
	}
	return out
}
