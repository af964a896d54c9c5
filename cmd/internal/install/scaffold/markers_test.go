// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/test/golden"
)

// The folder project has all arguments that there are, and markers where controller-gen sees none.
func TestMarkersBecomeDefinitionsThatCompile(t *testing.T) {
	for project, want := range map[string]string{"testdata/project": "testdata/project.go.txt", "../../../../examples/kubebuilder": "testdata/kubebuilder.go.txt"} {
		t.Run(filepath.Base(project), func(t *testing.T) {
			files, _, err := Definitions(project)
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, want, string(files[0].Content))

			folder := t.TempDir()
			if err := (Target{Folder: folder}).Install(t.Output(), files, ""); err != nil {
				t.Fatal(err)
			}
			code := filepath.Join(folder, filepath.FromSlash(files[0].Path))
			command := exec.CommandContext(t.Context(), "go", "vet", code) // in this module
			if out, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// What is read of the markers is what controller-gen has made of them.
func TestMarkersMeanWhatControllerGenSays(t *testing.T) {
	found, err := markersOf("../../../../examples/kubebuilder")
	if err != nil || len(found) != 2 {
		t.Fatalf("found %v, %v", found, err)
	}
	generated, err := os.ReadFile("../../../../examples/kubebuilder/config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for document := range strings.SplitSeq(string(generated), "\n---\n") {
		var configuration admissionregistrationv1.MutatingWebhookConfiguration // the other one has no other fields here
		if err := yaml.Unmarshal([]byte(document), &configuration); err != nil {
			t.Fatal(err)
		}
		for _, want := range configuration.Webhooks {
			for _, got := range found {
				if got.Name != want.Name {
					continue
				}
				seen++
				if string(got.Type)+"WebhookConfiguration" != configuration.Kind || got.Path != *want.ClientConfig.Service.Path || got.FailurePolicy != *want.FailurePolicy ||
					got.SideEffects != *want.SideEffects || !equal(got.Rules, want.Rules) || !equal(got.ReviewVersions, want.AdmissionReviewVersions) {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d of 2 webhooks are compared", seen)
	}
}

func TestProblemsOfMarkersNameFileAndLine(t *testing.T) {
	const good = "path=/p,mutating=true,failurePolicy=fail,sideEffects=None,groups=g.example.com,resources=books,verbs=create,versions=v1,name=a.b.c,admissionReviewVersions=v1"
	for name, tc := range map[string]struct{ marker, want string }{
		"an argument that does not exist":  {good + ",timeoutSecond=3", `unknown argument "timeoutSecond"`},
		"an argument that is missing":      {strings.Replace(good, "groups=g.example.com,", "", 1), `missing argument "groups"`},
		"a value of another type":          {strings.Replace(good, "mutating=true", "mutating=maybe", 1), "maybe"},
		"neither path nor url":             {strings.Replace(good, "path=/p,", "", 1), "mutually exclusive"},
		"a name of two parts":              {strings.Replace(good, "name=a.b.c", "name=a.b", 1), "three parts"},
		"an operation that does not exist": {strings.Replace(good, "verbs=create", "verbs=get", 1), `"get" is unknown`},
		"a kind for a resource":            {strings.Replace(good, "resources=books", "resources=Book", 1), `"Book" is not a resource`},
		"a failure policy":                 {strings.Replace(good, "failurePolicy=fail", "failurePolicy=maybe", 1), "failurePolicy"},
		"side effects":                     {strings.Replace(good, "sideEffects=None", "sideEffects=Unknown", 1), `sideEffects: "Unknown"`},
		"a match policy":                   {good + ",matchPolicy=Some", `"Some" for matchPolicy`},
		"a timeout":                        {good + ",timeoutSeconds=31", "is 31"},
		"a reinvocation policy":            {good + ",reinvocationPolicy=Always", `reinvocationPolicy: "Always"`},
		"reinvocation of a validating one": {strings.Replace(good, "mutating=true", "mutating=false", 1) + ",reinvocationPolicy=Never", "for mutating webhooks"},
		"a version that is gone":           {good + ",webhookVersions=v1beta1", `"v1beta1" is served no more`},
		"review versions":                  {strings.Replace(good, "admissionReviewVersions=v1", "admissionReviewVersions=v2", 1), `"v2"`},
		"a Service that has no name":       {good + ",serviceName=\"a b\"", "serviceName"},
		"a patch of an unknown field":      {good + ",patch=`{\"namespaceSelectors\":{}}`", "namespaceSelectors"},
		"a URL without a path":             {strings.Replace(good, "path=/p", `url="https://192.0.2.1"`, 1), "must begin with a slash"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := markersIn("api/v1/book.go", []byte("package v1\n\n// +kubebuilder:webhook:"+tc.marker+"\n"))
			if err == nil || !strings.Contains(err.Error(), "api/v1/book.go:3: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := markersIn("a.go", []byte("package v1\nfunc {\n")); err == nil || !strings.Contains(err.Error(), "a.go:2:") {
		t.Errorf("a file that is no Go: %v", err)
	}
	folder := t.TempDir()
	below := filepath.Join(folder, "tools") // a module of its own
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module example.com/tools\n", "a.go": "package a\n// +kubebuilder:webhook:" + good + "\n"} {
		if err := os.WriteFile(filepath.Join(below, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Definitions(folder); err == nil || !strings.Contains(err.Error(), "no Go file has a marker") {
		t.Errorf("a folder without markers: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "a.go"), []byte("package a\n// +kubebuilder:webhook:"+good+"\n// +kubebuilder:webhook:"+good+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Definitions(folder); err == nil || !strings.Contains(err.Error(), "a.go:3: ") || !strings.Contains(err.Error(), "a.go:2 too") {
		t.Errorf("two of one name: %v", err)
	}
}

// FuzzMarkers reads Go files with any markers: what is accepted is valid as a definition, and
// written as Go code that can be parsed.
func FuzzMarkers(f *testing.F) {
	for _, path := range []string{"testdata/project/api/v1/book_webhook.go", "testdata/project/internal/webhook/pod.go"} {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("package a\n// +kubebuilder:webhook:path=/a,mutating=true,name=\"a\\n.b.c\"")
	f.Add("package a\n// +kubebuilder:webhook:")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := markersIn("a.go", []byte(text))
		if err != nil || unique(found) != nil {
			return
		}
		for _, m := range found {
			if err := m.Problems(); err != nil {
				t.Errorf("%+v: %v", m, err)
			}
			if m.Type != admission.TypeMutating && m.Type != admission.TypeValidating {
				t.Errorf("type %q", m.Type)
			}
		}
		code, err := define(found)
		if err != nil {
			t.Fatalf("%v", err)
		}
		parses(t, code)
	})
}

func parses(t *testing.T, code []byte) {
	t.Helper()
	if _, err := parser.ParseFile(token.NewFileSet(), "webhooks.go", code, 0); err != nil {
		t.Errorf("%v\n%s", err, code)
	}
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }
