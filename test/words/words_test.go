// SPDX-License-Identifier: Apache-2.0

// Package words tests the words of messages, documents and code. The list is words.yaml.
package words

import (
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

type list struct {
	Words      []word      `json:"words"`
	Exceptions []exception `json:"exceptions"`
	Packages   []string    `json:"packages"`
}

type word struct {
	Word string `json:"word"`
	Say  string `json:"say"`
	In   string `json:"in"`
}

type exception struct {
	File  string   `json:"file"`
	Words []string `json:"words"`
}

// TestWords finds banned words, and exceptions that are no longer needed.
func TestWords(t *testing.T) {
	data, err := os.ReadFile("words.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var l list
	if err := yaml.UnmarshalStrict(data, &l); err != nil {
		t.Fatalf("words.yaml: %v", err)
	}
	patterns := make([]*regexp.Regexp, len(l.Words))
	for i, w := range l.Words {
		if !slices.Contains([]string{"prose", "text", "identifiers"}, w.In) || w.Say == "" {
			t.Errorf("words.yaml: %q: want a replacement, and prose, text or identifiers", w.Word)
		}
		patterns[i] = pattern(w.Word)
	}
	used, files := map[string]bool{}, tracked(t)
	l.checkPackages(t, files)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil || bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) {
			continue // deleted, a link to a folder, or not text
		}
		read := texts(file, content)
		for part, text := range read {
			read[part] = unwrapped(text)
		}
		for i, w := range l.Words {
			found := ""
			if strings.Contains(read[w.In], strings.TrimSuffix(w.Word, "*")) {
				found = patterns[i].FindString(read[w.In])
			}
			switch {
			case found == "":
			case l.excepts(file, w.Word):
				used[file] = true
			default:
				t.Errorf("%s: %q: write %s", file, found, w.Say)
			}
		}
	}
	for _, e := range l.Exceptions {
		if !used[e.File] {
			t.Errorf("words.yaml: %s has none of these words: remove the exception", e.File)
		}
	}
}

// pattern finds a word, or with * at its end, words that begin with it.
func pattern(word string) *regexp.Regexp {
	start, begins := strings.CutSuffix(word, "*")
	end := `\b`
	if begins {
		end = `\w+`
	}
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(start) + end)
}

// checkPackages finds words that name several packages.
func (l *list) checkPackages(t *testing.T, files []string) {
	folders := map[string][]string{}
	for _, file := range files {
		folder := path.Dir(file)
		if name := path.Base(folder); strings.HasSuffix(file, ".go") && slices.Contains(l.Packages, name) && !slices.Contains(folders[name], folder) {
			folders[name] = append(folders[name], folder)
		}
	}
	for name, of := range folders {
		if len(of) > 1 {
			t.Errorf("%s names several packages: %s", name, strings.Join(of, ", "))
		}
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		word, text string
		want       bool
	}{
		{"most", "most", true}, {"most", "mostof", false}, {"most*", "mostof", true}, {"most*", "most", false}, {"most*", "atmostof", false},
	} {
		if got := pattern(c.word).MatchString(c.text); got != c.want {
			t.Errorf("%q in %q: found %v, want %v", c.word, c.text, got, c.want)
		}
	}
}

func (l *list) excepts(file, word string) bool {
	return slices.ContainsFunc(l.Exceptions, func(e exception) bool {
		return e.File == file && (slices.Contains(e.Words, word) || slices.Contains(e.Words, "*"))
	})
}

// tracked returns the files of the repository, without those of other projects.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(files, func(file string) bool { return strings.Contains(file, "/testdata/axe-core/") })
}

// unwrapped returns a text in lower case and on one line, without the marks of comments.
func unwrapped(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(strings.ToLower(text)), func(word string) bool {
		return word == "//" || word == "#"
	}), " ")
}

// texts returns the parts of a file in which words are looked for.
func texts(file string, content []byte) map[string]string {
	out := map[string]string{"text": string(content)}
	switch filepath.Ext(file) {
	case ".md":
		out["prose"] = string(content)
	case ".go":
		var names, literals strings.Builder
		var s scanner.Scanner
		s.Init(token.NewFileSet().AddFile(file, -1, len(content)), content, nil, 0)
		for {
			_, kind, literal := s.Scan()
			switch kind {
			case token.IDENT:
				names.WriteString(literal + "\n")
			case token.STRING:
				literals.WriteString(literal + "\n\n")
			case token.EOF:
				out["identifiers"] = names.String()
				if !strings.HasSuffix(file, "_test.go") {
					out["prose"] = literals.String()
				}
				return out
			}
		}
	}
	return out
}
