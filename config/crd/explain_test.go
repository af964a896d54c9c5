// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

const exemptions = "exemptions.sallyport.io"

// kinds are the types of the definitions, by the names of their resources.
var kinds = map[string]reflect.Type{
	"poddefaults.kubeflow.org":                reflect.TypeFor[v1alpha1.PodDefault](),
	"clusterpoddefaults.sallyport.io":         reflect.TypeFor[sallyportv1alpha1.ClusterPodDefault](),
	"poddefaultrevisions.sallyport.io":        reflect.TypeFor[sallyportv1alpha1.PodDefaultRevision](),
	"clusterpoddefaultrevisions.sallyport.io": reflect.TypeFor[sallyportv1alpha1.ClusterPodDefaultRevision](),
	exemptions: reflect.TypeFor[sallyportv1alpha1.Exemption](),
}

// documented are the paths of a kind that kubectl explain describes: each field of the project's
// own types at every depth, and the first level of Kubernetes' types.
func documented(kind reflect.Type) map[string]bool {
	paths := map[string]bool{}
	var visit func(t reflect.Type, path string)
	visit = func(t reflect.Type, path string) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		// A quantity, a time and raw JSON are values, whatever their types consist of.
		if t.Kind() != reflect.Struct || t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[runtime.RawExtension]() {
			return
		}
		own := strings.HasPrefix(t.PkgPath(), "github.com/sallyport-io/")
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Type == reflect.TypeFor[metav1.TypeMeta](), f.Type == reflect.TypeFor[metav1.ObjectMeta]():
			case name == "": // embedded
				visit(f.Type, path)
			default:
				paths[path+"."+name] = true
				if own {
					visit(f.Type, path+"."+name)
				}
			}
		}
	}
	visit(kind, "")
	return paths
}

func TestEachFieldOfOursAndTheFirstLevelOfKubernetesAreDescribed(t *testing.T) {
	for _, definition := range all(t) {
		paths := documented(kinds[definition.Name])
		for _, want := range []string{".spec", ".rollout.stepStartTime", ".spec.rollout.promotion.force", ".spec.rollout.steps.podSelector.matchLabels", ".spec.volumes.csi", ".status.conditions.reason"} {
			if definition.Name == exemptions && strings.HasPrefix(want, ".spec.") {
				continue
			}
			if strings.HasPrefix(want, ".rollout") == strings.Contains(definition.Name, "revision") && !paths[want] {
				t.Errorf("%s: the types do not have %s", definition.Name, want)
			}
		}
		schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			at := schema
			for name := range strings.SplitSeq(path[1:], ".") {
				if at.Items != nil {
					at = at.Items.Schema
				}
				property := at.Properties[name]
				at = &property
			}
			if at.Description == "" {
				t.Errorf("%s: %s has no description", definition.Name, path)
			}
		}
	}
}

// kubectl is that of the API server's release.
func kubectl(ctx context.Context, config *rest.Config, args ...string) ([]byte, error) {
	args = append([]string{"--server", config.Host, "--certificate-authority", config.CAFile, "--token", config.BearerToken}, args...)
	return exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), args...).CombinedOutput()
}

// testExplain asks kubectl explain about every documented field.
func testExplain(t *testing.T, config *rest.Config) {
	t.Setenv("KUBECACHEDIR", t.TempDir())
	command := func(ctx context.Context, args ...string) ([]byte, error) {
		return kubectl(ctx, config, append([]string{"explain"}, args...)...)
	}
	explain := func(args ...string) string {
		out, err := command(t.Context(), args...)
		if err != nil {
			t.Errorf("kubectl explain %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for name := range kinds {
		lab.Eventually(t.Context(), t, 30*time.Second, "the schema of "+name, func(ctx context.Context) (bool, error) {
			_, err := command(ctx, name)
			return err == nil, nil
		})
	}
	// Whatever the release of kubectl wraps.
	line := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		// --recursive prints the names and types of all fields.
		tree := explain(name, "--recursive")
		must := []string{"FIELDS:", "metadata", "rollout"}
		if name == exemptions {
			must[2] = "workloads"
		}
		for _, each := range must {
			if !strings.Contains(tree, each) {
				t.Errorf("%s: explain --recursive does not print %s:\n%.500s", name, each, tree)
			}
		}
		// One call describes a level: those above cover all paths.
		levels := map[string][]string{}
		for path := range documented(kinds[name]) {
			at := strings.LastIndexByte(path, '.')
			levels[path[:at]] = append(levels[path[:at]], path[at+1:])
		}
		var wait sync.WaitGroup
		for level, fields := range levels {
			wait.Go(func() {
				got := explain(name + level)
				for _, f := range fields {
					// A name, its type, and then its text in lines of their own.
					_, after, _ := strings.Cut(got, "\n  "+f+"\t")
					_, text, _ := strings.Cut(after, "\n")
					text, _, _ = strings.Cut(text, "\n\n")
					if text = line(text); text == "" || strings.Contains(text, "<no description>") {
						t.Errorf("kubectl explain %s%s.%s has no text", name, level, f)
					}
				}
			})
		}
		wait.Wait()
	}
	for path, want := range map[string]string{
		"poddefault.spec.serviceAccountName":              "of several PodDefaults, the last one applied wins",
		"poddefault.spec.command":                         "of several PodDefaults, the first one applied wins",
		"poddefault.spec.priority":                        "(+sallyport)",
		"clusterpoddefault.spec.rollout.steps.percent":    "share of workloads",
		"poddefault.spec.containerSelector.first":         "narrows the selection to one container",
		"poddefaultrevisions.rollout.step":                "current step",
		"poddefault.spec.volumes.persistentVolumeClaim":   "PersistentVolumeClaim",
		"clusterpoddefault.status.pods.outdated":          "earlier revision",
		"clusterpoddefaultrevisions.sallyport.io.spec":    "without desc",
		"clusterpoddefault.spec.positions.container":      "Before and After refer",
		"poddefault.spec.rollout.promotion":               "without waiting",
		"poddefault.spec.automountServiceAccountToken":    "the last one applied wins",
		"exemption.spec.until":                            "no further away than maxExemption",
		"poddefault.spec.sidecars.terminationMessagePath": "Path at which the file",
	} {
		if got := line(explain(path)); !strings.Contains(got, want) {
			t.Errorf("kubectl explain %s: %q is missing in\n%s", path, want, got)
		}
	}
}

// What the texts say of several PodDefaults is in their order, in which priority comes first.
func TestNoTextSaysThatNamesDecide(t *testing.T) {
	for _, definition := range all(t) {
		walk("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if strings.Contains(strings.Join(strings.Fields(schema.Description), " "), "by name wins") {
				t.Errorf("%s%s: %s", definition.Name, path, schema.Description)
			}
		})
	}
}
