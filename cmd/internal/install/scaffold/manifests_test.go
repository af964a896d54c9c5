// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/golden"
)

func objectsOf(t *testing.T, text string) []*manifest.Object {
	t.Helper()
	objects, _, err := manifest.Parse("stdin", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// rendered.yaml patches the webhooks of the folder project in every field, has one that has no marker, and lacks one.
func TestManifestsDecideAndMarkersSayWhere(t *testing.T) {
	text, err := os.ReadFile("testdata/rendered.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, notes, err := Rendered("testdata/project", objectsOf(t, string(text)))
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/rendered.go.txt", string(files[0].Content))
	golden.Equal(t, "testdata/rendered.notes.txt", strings.Join(notes, "\n")+"\n")

	folder := t.TempDir()
	if err := (Target{Folder: folder}).Install(t.Output(), files, ""); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "vet", filepath.Join(folder, filepath.FromSlash(files[0].Path))) // in this module
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}

	files, notes, err = Rendered(t.TempDir(), objectsOf(t, string(text)))
	if err != nil || strings.Contains(string(files[0].Content), "marker is") || slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, "marker") }) {
		t.Errorf("without markers: %v, %q", err, notes)
	}
}

func TestProblemsOfManifestsNameTheLine(t *testing.T) {
	const good = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: a
webhooks:
- name: a.example.com
  clientConfig: {service: {name: s, namespace: ns, path: /a}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`
	if _, _, err := Rendered(t.TempDir(), objectsOf(t, good)); err != nil {
		t.Fatal(err)
	}
	_, one, _ := strings.Cut(good, "webhooks:\n")
	for name, tc := range map[string]struct{ text, want string }{
		"a field that is not known":         {good + "  selector: {}\n", "stdin:11: unknown field"},
		"a version that is gone":            {strings.Replace(good, "k8s.io/v1", "k8s.io/v1beta1", 1), `"v1beta1" is served no more`},
		"side effects":                      {strings.Replace(good, "None", "Some", 1), `stdin:6: webhook "a.example.com": sideEffects: "Some"`},
		"neither a service nor a url":       {strings.Replace(good, "{service: {name: s, namespace: ns, path: /a}}", "{}", 1), "neither a service nor a url"},
		"both":                              {strings.Replace(good, "/a}", "/a}, url: https://a/b", 1), "mutually exclusive"},
		"a name of a service":               {strings.Replace(good, "name: s", `name: "s\n"`, 1), "serviceName"},
		"two of one name":                   {good + strings.Replace(one, "path: /a", "path: /b", 1), "an application serves each once"},
		"two of one path in configurations": {good + "---\n" + strings.NewReplacer("name: a\n", "name: b\n", "- name: a", "- name: b").Replace(good), "MutatingWebhookConfiguration b: name"},
		"no webhook":                        {"apiVersion: v1\nkind: Service\nmetadata: {name: s}\n", "kustomize build config/default"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := Rendered(t.TempDir(), objectsOf(t, tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// FuzzRendered reads any manifests: what is accepted is written as Go code that can be parsed.
func FuzzRendered(f *testing.F) {
	text, err := os.ReadFile("testdata/rendered.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	project := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		objects, _, err := manifest.Parse("stdin", []byte(text))
		if err != nil {
			return
		}
		files, _, err := Rendered(project, objects)
		if err != nil {
			return
		}
		parses(t, files[0].Content)
	})
}
