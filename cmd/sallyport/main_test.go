// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/sallyport-io/sallyport/test/golden"
)

// asCommand is an environment variable that makes the test binary act as the command, for tests
// that send signals to a process.
const asCommand = "SALLYPORT_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// A result is the result of one command line.
type result struct {
	status         int
	stdout, stderr string
}

// sallyport runs a command line with an empty stdin.
func sallyport(t *testing.T, args ...string) result {
	t.Helper()
	return sallyportWith(t, "", args...)
}

// sallyportWith runs a command. What review says of all pods that it could not decide is left out: tests about it call
// sallyportRaw.
func sallyportWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	r := sallyportRaw(t, stdin, args...)
	r.stderr = openNote.ReplaceAllString(r.stderr, "")
	return r
}

var openNote = regexp.MustCompile(`(?m)^note: not decided without a cluster: .*\n`)

func sallyportRaw(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{}, args...) // for nil, cobra takes those of this program
	status := run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// want compares the exit status and both outputs.
func (r result) want(t *testing.T, status int, stdout, stderr string) {
	t.Helper()
	if diff := cmp.Diff(result{status, stdout, stderr}, r, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// wantOK returns the output of a command that succeeded with an empty stderr.
func (r result) wantOK(t *testing.T) string {
	t.Helper()
	if r.status != exitOK || r.stderr != "" {
		t.Fatalf("status %d, stderr:\n%s", r.status, r.stderr)
	}
	return r.stdout
}

// wantError expects a failure whose stderr contains all of the texts, and an empty stdout.
func (r result) wantError(t *testing.T, texts ...string) {
	t.Helper()
	if r.status != exitError || r.stdout != "" {
		t.Errorf("status %d, stdout:\n%s", r.status, r.stdout)
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("stderr does not say %q:\n%s", text, r.stderr)
		}
	}
}

// equal compares with a file in testdata.
func equal(t *testing.T, file, got string) {
	t.Helper()
	golden.Equal(t, filepath.Join("testdata", file), got)
}

// file writes a file and returns its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// configured writes a configuration and returns its path.
func configured(t *testing.T, text string) string {
	t.Helper()
	return file(t, "sallyport.yaml", configHead+text)
}

func TestVersionIsPrintedByTheCommandAndByTheFlag(t *testing.T) {
	printed := sallyport(t, "version").wantOK(t)
	if !strings.HasPrefix(printed, "sallyport version ") || strings.Count(printed, "\n") != 1 || !strings.Contains(printed, "(go1.") {
		t.Errorf("printed %q", printed)
	}
	if flag := sallyport(t, "--version").wantOK(t); flag != printed {
		t.Errorf("--version prints %q, version %q", flag, printed)
	}
}

func TestProblemsInTheCommandLineSayWhatToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"no object to roll back":                     {[]string{"rollout", "undo"}, []string{"sallyport rollout undo takes one argument, poddefault/NAME or clusterpoddefault/NAME, but got 0 arguments"}},
		"too many objects":                           {[]string{"preview", "a", "b", "c"}, []string{"but got 3 arguments"}},
		"a command that is almost right":             {[]string{"serv"}, []string{"Did you mean this?\n      serve"}},
		"a command that does not exist":              {[]string{"reviews"}, []string{`unknown command "reviews"`, "Did you mean this?", "review"}},
		"the name of an older command":               {[]string{"rollback"}, []string{`unknown command "rollback"`, "Did you mean this?", "rollout"}},
		"a subcommand that does not exist":           {[]string{"rollout", "rollback"}, []string{`unknown command "rollback" for "sallyport rollout"`, "status or undo"}},
		"a flag that does not exist":                 {[]string{"review", "--within", "x"}, []string{"--within", "see 'sallyport review --help'"}},
		"a file without -f":                          {[]string{"review", "pod.yaml"}, []string{`"pod.yaml"`, "with -f"}},
		"an argument of serve":                       {[]string{"serve", "x"}, []string{`"x"`, "flags"}},
		"an argument of manifests":                   {[]string{"manifests", "crd"}, []string{`"crd"`, "--part"}},
		"an argument of version":                     {[]string{"version", "x"}, []string{`"x"`}},
		"an invalid number":                          {[]string{"serve", "--secure-port", "https"}, []string{`"https"`, "--secure-port", "--help"}},
		"a mode of registration that does not exist": {[]string{"serve", "--registration", "maybe"}, []string{`"maybe"`, `supported values: "API", "Manifest", "None"`}},
	} {
		t.Run(name, func(t *testing.T) {
			sallyport(t, tc.args...).wantError(t, tc.want...)
		})
	}
}
