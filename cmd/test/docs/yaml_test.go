// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	testv1alpha1 "github.com/sallyport-io/sallyport/api/test/v1alpha1"
)

// absolute are files on the machine of the reader. The world has those of the same name.
var absolute = regexp.MustCompile(`(?m): /\S*/(\S+)$`)

var (
	kindOf      = regexp.MustCompile(`(?m)^kind: (\S+)$`)
	namespaceOf = regexp.MustCompile(`\bnamespace: ([-a-z0-9]+)`)
)

func hasKind(b block) bool { return kindOf.MatchString(b.text) }

// isTestCase tells whether TestExamplesOfFieldsAreTestCases holds a block to a test case.
func isTestCase(b block) bool { return b.document == "docs/poddefault.md" }

// yaml holds that objects are accepted by whom they are for.
func (w *world) yaml(t *testing.T, b block) {
	if isTestCase(b) {
		return
	}
	file := filepath.Join(w.folder, "block.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(b.text)
	kind, rest := b.kind()
	switch kind {
	case "settings":
		write("apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\nwebhooks:\n- name: " + rest +
			"\n  settings:\n    " + strings.ReplaceAll(b.text, "\n", "\n    "))
		w.sh(t, "sallyport config check block.yaml")
		return
	case "part of":
		w.contains(t, rest, b.text)
		return
	}
	switch kindOf.FindStringSubmatch(b.text)[1] {
	case "SallyportConfiguration":
		write(absolute.ReplaceAllString(b.text, ": $1"))
		w.sh(t, "sallyport config check block.yaml")
	case "Suite":
		decode(t, b.text, &testv1alpha1.Suite{})
	case "AdmissionConfiguration":
		decode(t, b.text, &apiserverv1.AdmissionConfiguration{})
	case "Config":
		decode(t, b.text, &clientcmdv1.Config{})
	case "Kustomization", "Application": // of Flux and Argo CD
		decode(t, b.text, &unstructured.Unstructured{})
	default:
		w.be(t, installed)
		namespace := "team-a"
		if m := namespaceOf.FindStringSubmatch(b.text); m != nil {
			namespace = m[1]
		}
		w.sh(t, "kubectl apply --server-side --dry-run=server --validate=strict -n "+namespace+" -f block.yaml")
	}
}

// contains holds that a file of the world has the lines of a text, with any indentation.
func (w *world) contains(t *testing.T, file, text string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.folder, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	pattern := "(?m)"
	for i, line := range lines {
		if i > 0 {
			pattern += `\n`
		}
		pattern += `^ *` + regexp.QuoteMeta(line) + `$`
	}
	if !regexp.MustCompile(pattern).Match(data) {
		t.Errorf("%s does not have\n%s", file, text)
	}
}
