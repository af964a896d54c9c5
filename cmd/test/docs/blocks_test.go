// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A block is what a document shows between fences. The line before the fence may hold a
// mark: an HTML comment, which is not seen where the document is read, that says how the
// block is tested.
//
//	<!-- run -->                         every command is run against a real API server
//	<!-- run: OPTION, OPTION -->         the same, see [block.options]
//	<!-- check: REASON -->               subcommands and flags exist; not run, for that reason
//	<!-- not run: REASON -->             neither
//	<!-- flags: sallyport serve -->      arguments of that command
//	<!-- settings: imagepull -->         YAML that is the settings of a ready-made webhook
//	<!-- part of: pod.yaml -->           YAML that stands so in a file below testdata
type block struct {
	document string // as seen from the root of the repository
	line     int    // of the first fence
	language string
	text     string
	mark     string // without what makes it a comment; empty for none
}

func (b block) name() string { return fmt.Sprintf("%s line %d", b.document, b.line) }

// kind is the mark up to a colon, rest what follows.
func (b block) kind() (kind, rest string) {
	kind, rest, _ = strings.Cut(b.mark, ":")
	return kind, strings.TrimSpace(rest)
}

// shell tells whether a block has commands.
func (b block) shell() bool { return b.language == "sh" || b.language == "console" }

var (
	fence   = regexp.MustCompile("^( *)```(.*)$")
	comment = regexp.MustCompile(`^ *<!-- (.*) -->$`)
)

// blocks are those of a document, in their order. Indentation, as in lists, is removed.
func blocks(t *testing.T, path string) []block {
	t.Helper()
	document, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	var out []block
	lines := strings.Split(read(t, path), "\n")
	for i := 0; i < len(lines); i++ {
		open := fence.FindStringSubmatch(lines[i])
		if open == nil {
			continue
		}
		b := block{document: filepath.ToSlash(document), line: i + 1, language: strings.TrimSpace(open[2])}
		if i > 0 {
			if m := comment.FindStringSubmatch(lines[i-1]); m != nil {
				b.mark = m[1]
			}
		}
		for i++; i < len(lines) && !fence.MatchString(lines[i]); i++ {
			b.text += strings.TrimPrefix(lines[i], open[1]) + "\n"
		}
		if i == len(lines) {
			t.Fatalf("%s: the fence is never closed", b.name())
		}
		out = append(out, b)
	}
	return out
}

// elsewhere are documents whose commands another test runs, in an order and between checks of
// its own.
var elsewhere = map[string]string{
	"docs/kubeflow-migration.md": "cmd/test/e2e/install/kubeflow_test.go",
	"docs/fluid-migration.md":    "cmd/test/e2e/install/fluid_test.go",
}

// guides are the documents whose blocks are tested: README.md, all in docs, and those of the
// examples that are applied.
func guides(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, document := range documents(t) {
		path, err := filepath.Rel(root, document)
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.ToSlash(path)
		if path == "README.md" || strings.HasPrefix(path, "docs/") || path == "examples/sidecars/README.md" || path == "examples/poddefaults/README.md" {
			out = append(out, document)
		}
	}
	if len(out) == 0 {
		t.Fatal("no guide is found")
	}
	return out
}

// TestEveryBlockIsTestedOrSaysWhyNot fails for a block of which nobody has said how it is
// tested. Go code is looked for in the examples, and YAML with a kind is known by it.
func TestEveryBlockIsTestedOrSaysWhyNot(t *testing.T) {
	for document, test := range elsewhere {
		if !strings.Contains(read(t, filepath.Join(root, test)), filepath.Base(document)) {
			t.Errorf("%s does not know %s", test, document)
		}
	}
	for _, guide := range guides(t) {
		for _, b := range blocks(t, guide) {
			if elsewhere[b.document] != "" {
				continue
			}
			kind, rest := b.kind()
			ok := false
			switch {
			case b.shell():
				ok = b.mark == "run" || rest != "" && (kind == "run" || kind == "check" || kind == "not run")
			case b.language == "yaml":
				ok = b.mark == "" && (hasKind(b) || isTestCase(b)) || rest != "" && (kind == "settings" || kind == "part of")
			case b.language == "go" || b.language == "diff":
				ok = b.mark == "" // TestGoCodeInDocumentsIsThatOfTheExamples; the cloud's diff has a test of its own
			case b.language == "text":
				ok = b.mark == "" || kind == "flags" && rest != ""
			}
			if !ok {
				t.Errorf("%s: a block of language %q with the mark %q: see the comment of type block for what there is", b.name(), b.language, b.mark)
			}
		}
	}
}
