// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"
)

func TestReviewOfWhatIsNoObjectEndsWithStatus1(t *testing.T) {
	path := file(t, "values.yaml", "# Helm values\n\nreplicas: 3\n")
	sallyport(t, "review", "-f", path).want(t, exitError, "", "sallyport: "+path+":3: not a Kubernetes object: it has no apiVersion and no kind\n")
	sallyportWith(t, "{}", "review", "-f", "-").wantError(t, "stdin:1: not a Kubernetes object")
}

func TestPathsWithNothingInThemAreProblems(t *testing.T) {
	empty := t.TempDir()
	pod := file(t, "pod.yaml", matchingYAML)
	notes := file(t, "notes.txt", "nothing to see")
	for name, tc := range map[string]struct {
		args  []string
		stdin string
		want  []string
	}{
		"a file that is not there":             {args: []string{"-f", filepath.Join(empty, "no.yaml")}, want: []string{"no.yaml", "no such file"}},
		"an empty file":                        {args: []string{"-f", file(t, "empty.yaml", "")}, want: []string{"empty.yaml holds no object"}},
		"a file with comments only":            {args: []string{"-f", file(t, "comments.yaml", "# nothing\n---\n# here\n")}, want: []string{"comments.yaml holds no object"}},
		"an empty stdin":                       {args: []string{"-f", "-"}, want: []string{"stdin holds no object"}},
		"a folder without manifests":           {args: []string{"-f", filepath.Dir(notes)}, want: []string{"holds no .yaml, .yml or .json file"}},
		"a list of nothing to review":          {args: []string{"-f", "-"}, stdin: "apiVersion: v1\nkind: List\nitems: []\n", want: []string{"-: there is nothing to review"}},
		"the empty name":                       {args: []string{"-f", ""}, want: []string{"the name of a file is empty"}},
		"an empty file of --with":              {args: []string{"-f", pod, "--with", "-"}, want: []string{"stdin holds no object"}},
		"a folder of --with without manifests": {args: []string{"-f", pod, "--with", empty}, want: []string{empty + " holds no .yaml"}},
		"several of them":                      {args: []string{"-f", "a.yaml", "-f", "b.yaml", "--with", "c.yaml", "--with", "-"}, stdin: "x: y", want: []string{"a.yaml", "b.yaml", "c.yaml", "stdin:1: "}},
	} {
		t.Run(name, func(t *testing.T) {
			sallyportWith(t, tc.stdin, append([]string{"review"}, tc.args...)...).wantError(t, tc.want...)
		})
	}
	t.Run("no PodDefaults in a namespace is not a mistake", func(t *testing.T) {
		sallyportWith(t, "apiVersion: v1\nkind: List\nitems: []\n", "review", "-f", pod, "--with", "-").want(t, exitOK, "Pod matching: allowed, unchanged\n", "")
	})
}

func TestReplayReadsStdinOnce(t *testing.T) {
	sallyportWith(t, "", "replay", "-f", "-", "--with", "-").wantError(t, "stdin can be read only once")
}
