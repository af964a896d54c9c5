// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const checkout = "../.."

// A script runs no commands, but keeps them, and says what they are to say.
type script struct {
	mu    sync.Mutex
	ran   []*exec.Cmd
	lines []string          // what ran, a line each
	says  map[string]string // by what a command contains
	fails string            // what the command contains that fails
}

func (s *script) start(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := strings.Join(cmd.Args, " ")
	s.ran, s.lines = append(s.ran, cmd), append(s.lines, line)
	for part, said := range s.says {
		if strings.Contains(line, part) {
			_, _ = fmt.Fprintln(cmd.Stdout, said)
		}
	}
	if s.fails != "" && strings.Contains(line, s.fails) {
		return errors.New("exit status 1")
	}
	return nil
}

func (s *script) index(part string) int {
	return slices.IndexFunc(s.lines, func(line string) bool { return strings.Contains(line, part) })
}

func scripted(t *testing.T, top string, env map[string]string) (*tree, *script, *bytes.Buffer) {
	t.Helper()
	tr, err := newTree(t.Context(), top, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	s, out := &script{}, &bytes.Buffer{}
	tr.start, tr.out = s.start, out
	return tr, s, out
}

func folderWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// miniature is a checkout with what targets look at.
func miniature(t *testing.T) string {
	t.Helper()
	files := map[string]string{"go.work": "", "go.mod": "", "docs/api.md": "\n", "internal/cli/setting/zz_generated.help.go": "\n", "test/conformance/suite/kubernetes-1.36.mod": ""}
	for _, g := range generators {
		for _, from := range slices.Concat(g.from, fromTools) {
			if filepath.Ext(from) == "" {
				files[from+"/file"] = ""
			} else if files[from] == "" {
				files[from] = ""
			}
		}
	}
	files["config/crd/a_b.yaml"], files["test/controlplane/versions/1.36/go.mod"] = "", ""
	return folderWith(t, files)
}

func TestTheMakefileNamesAllTargetsAndVariables(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(checkout, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	inMakefile := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z -]*):.*\n\t\$\(ci\) \$@$`).FindAllSubmatch(makefile, -1) {
		for _, name := range strings.Fields(string(m[1])) {
			inMakefile[name] = true
		}
	}
	want := slices.Sorted(maps.Keys(targets))
	if got := slices.Sorted(maps.Keys(inMakefile)); !slices.Equal(got, want) {
		t.Errorf("the Makefile has targets\n%v, want\n%v", got, want)
	}
	if n := bytes.Count(makefile, []byte("\n")); n > 150 {
		t.Errorf("the Makefile has %d lines, at most 150 are wanted: what a target does belongs here", n)
	}
	exported := regexp.MustCompile(`(?m)^export (.*)$`).FindSubmatch(makefile)
	read := map[string]bool{}
	if _, err := settingsFrom(func(name string) string { read[name] = true; return "" }); err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(exported[1])) {
		if !read[name] {
			t.Errorf("the Makefile exports %s, which nothing reads", name)
		}
	}
}

func TestVariables(t *testing.T) {
	good := map[string]string{"PARALLEL": "2", "CHECKS": "7", "FUZZTIME": "3s", "RERUNS": "1", "BENCH": "-json  -only x", "TAG": "1"}
	s, err := settingsFrom(func(name string) string { return good[name] })
	if err != nil {
		t.Fatal(err)
	}
	if s.parallel != 2 || s.checks != 7 || s.fuzzTime != 3*time.Second || s.reruns != 1 || !slices.Equal(s.bench, []string{"-json", "-only", "x"}) || !s.tag {
		t.Errorf("settings are %+v", s)
	}
	for name, value := range map[string]string{"PARALLEL": "0", "CHECKS": "many", "RERUNS": "-1", "FUZZTIME": "1"} {
		_, err := settingsFrom(func(asked string) string {
			if asked == name {
				return value
			}
			return ""
		})
		if err == nil || !strings.Contains(err.Error(), name+"="+value) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	if _, err := newTree(t.Context(), t.TempDir(), func(string) string { return "" }); err == nil {
		t.Error("a folder that is no checkout was taken")
	}
	if err := run(t.Context(), []string{"-top", checkout, "tset"}); err == nil || !strings.Contains(err.Error(), `"tset"`) {
		t.Errorf("an unknown target: %v", err)
	}
}

// What is found by reading the checkout.
func TestPackages(t *testing.T) {
	tr, err := newTree(t.Context(), checkout, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	folders, err := tr.apiserverFolders()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"./cmd/test/e2e/...", "./cmd/internal/offline/chain", "."} {
		if !slices.Contains(folders, want) {
			t.Errorf("%s is not among the folders with tests on an API server: %v", want, folders)
		}
	}
	if slices.Contains(folders, operatorModule) {
		t.Error("the operator's module is tested in itself")
	}
	for _, dir := range longest {
		if _, err := os.Stat(filepath.Join(checkout, dir)); err != nil {
			t.Error(err)
		}
	}
	drawing, err := tr.foldersWith(importsRapid)
	if err != nil || !slices.Contains(drawing, "./cmd/test/specification") || slices.Contains(drawing, "./tools/ci") {
		t.Errorf("packages that draw cases are %v, %v", drawing, err)
	}
	modules, err := tr.moduleFolders()
	if err != nil || !slices.Contains(modules, ".") || !slices.Contains(modules, "./test/controlplane") || !slices.Contains(modules, "./tools/lint") {
		t.Errorf("modules are %v, %v", modules, err)
	}
	work, err := tr.workModules()
	if err != nil || !slices.Contains(work, ".") || !slices.Contains(work, "./cmd/test") || slices.Contains(work, "./tools/lint") {
		t.Errorf("modules of go.work are %v, %v", work, err)
	}
	if tr.hasPackages("./tools/lint") || !tr.hasPackages("./test/controlplane") {
		t.Error("tools/lint has no packages, test/controlplane has some")
	}
	releases, err := tr.olderReleases()
	if err != nil || len(releases) == 0 {
		t.Errorf("older releases are %v, %v", releases, err)
	}
}

func TestLightPackagesDependOnNothingHeavy(t *testing.T) {
	tr, s, _ := scripted(t, checkout, nil)
	s.says = map[string]string{"go list": strings.Join([]string{
		"example.com/a fmt", "example.com/a.test fmt testing", "example.com/b fmt", "example.com/b.test google.golang.org/grpc", "example.com/c fmt",
	}, "\n")}
	if got, err := tr.light(); err != nil || !slices.Equal(got, []string{"example.com/a"}) {
		t.Errorf("light packages are %v, %v", got, err)
	}
}

func TestTestsAreRunAsAsked(t *testing.T) {
	top := folderWith(t, map[string]string{"go.work": ""})
	tr, s, _ := scripted(t, top, map[string]string{"RERUNS": "1"})
	s.says = map[string]string{"-n gotestsum": "/tool"}
	if err := tr.goTest(testRun{
		name: "x", dir: "sub", packages: []string{"./a", "./b"}, flags: []string{"-count=1"}, before: niced(), last: []string{"-rapid.checks=3"},
	}); err != nil {
		t.Fatal(err)
	}
	last := s.ran[len(s.ran)-1]
	kept := filepath.Join(top, results, "x")
	want := "nice -n 19 /tool --format pkgname --format-hide-empty-pkg --hide-summary skipped --jsonfile " + kept + ".json --junitfile " + kept +
		".xml --rerun-fails=1 --rerun-fails-max-failures=5 --packages ./a ./b -- -vet=off -count=1 -args -rapid.checks=3"
	if got := strings.Join(last.Args, " "); got != want || last.Dir != filepath.Join(top, "sub") {
		t.Errorf("ran in %s\n%s, want\n%s", last.Dir, got, want)
	}
	if !slices.Contains(last.Env, "CGO_ENABLED=0") {
		t.Error("tests are compiled with other settings than commands")
	}
	s.fails = "/tool --format"
	if err := tr.goTest(testRun{name: "x", packages: []string{"./a"}}); err == nil || !strings.Contains(err.Error(), "tests of x") {
		t.Errorf("tests that failed: %v", err)
	}
}

func TestAVariableIsSetOnceOrNotAtAll(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "/outside")
	t.Setenv("GOGC", "50")
	tr, _, _ := scripted(t, checkout, nil)
	values := func(env []string, name string) (found []string) {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				found = append(found, value)
			}
		}
		return found
	}
	if got := values(tr.withoutAPIServer().environment(), "KUBEBUILDER_ASSETS"); len(got) > 0 {
		t.Errorf("unit tests find the control plane %v", got)
	}
	if got := values(tr.with(lazy).with("GOGC=off").environment(), "GOGC"); !slices.Equal(got, []string{"off"}) {
		t.Errorf("GOGC is %v", got)
	}
	if got := buildEnvironment("-mod=mod"); got[1] != "GOFLAGS=-mod=mod -trimpath -tags=grpcnotrace" {
		t.Errorf("flags of the user are lost: %v", got)
	}
}

func TestTheControlPlaneIsBuiltOnce(t *testing.T) {
	tr, s, _ := scripted(t, checkout, map[string]string{"K8S": "1.36.5"})
	s.says = map[string]string{"go run . -kubernetes 1.36.5 etcd": "building\n/assets"}
	failed := tr.sideBySide(func(t *tree) error {
		other, err := t.withControlPlane(basicComponents)
		if err == nil && !slices.Contains(other.environment(), "KUBEBUILDER_ASSETS=/assets") {
			return errors.New("tests do not find it")
		}
		return err
	}, func(t *tree) error { _, err := t.controlPlane(basicComponents); return err })
	if failed != nil || len(s.lines) != 1 {
		t.Errorf("ran %v: %v", s.lines, failed)
	}
}

func TestTheNightlyComparesPoliciesOnOlderReleases(t *testing.T) {
	tr, s, _ := scripted(t, miniature(t), map[string]string{"SALLYPORT_BROWSER": "/bin/sh"})
	s.fails, s.says = "TestRecordSeesChanges", map[string]string{"go env CC": "sh", "-kubernetes 1.36 etcd kube-apiserver kubectl": "/older"}
	if err := tr.nightly(); err == nil {
		t.Fatal("what comes after older releases failed, and all passed")
	}
	i := s.index("-run WhatLintAndChainAccept")
	if i < 0 || !slices.Contains(s.ran[i].Env, "KUBEBUILDER_ASSETS=/older") {
		t.Errorf("policies are not compared with 1.36:\n%s", strings.Join(s.lines, "\n"))
	}
}

func TestStagesStopAtTheFirstThatFails(t *testing.T) {
	top := miniature(t)
	for _, c := range []struct{ fails, ran, not string }{
		{fails: "go vet work", ran: "gofmt -l", not: "--jsonfile"},
		{fails: "unit.json", ran: "unit.json", not: "floor.json"},
		{fails: "floor.json", ran: "floor.json", not: "apiserver.json"},
		{fails: "apiserver.json", ran: "apiserver-bookstore.json", not: "race.json"},
		{fails: "race.json", ran: "apiserver-alone.json"},
	} {
		tr, s, _ := scripted(t, top, map[string]string{"SALLYPORT_BROWSER": "/bin/sh"})
		s.fails, s.says = c.fails, map[string]string{"go env CC": "sh"}
		if err := tr.test(); err == nil {
			t.Errorf("%s failed, and all passed", c.fails)
		}
		if s.index(c.ran) < 0 || c.not != "" && s.index(c.not) >= 0 {
			t.Errorf("when %s failed, this ran:\n%s", c.fails, strings.Join(s.lines, "\n"))
		}
	}
	tr, s, _ := scripted(t, top, map[string]string{"SALLYPORT_BROWSER": "/bin/sh"})
	s.says = map[string]string{"go env CC": "sh"}
	if err := tr.test(); err != nil {
		t.Error(err)
	}
	for i, stage := range []string{"unit.json", "floor.json", "apiserver.json", "race.json"} {
		if s.index(stage) < 0 || i > 0 && s.index(stage) < s.index("unit.json") {
			t.Errorf("%s: %s", stage, strings.Join(s.lines, "\n"))
		}
	}
	if run := s.ran[s.index("unit.json")]; !slices.Contains(run.Env, lazy) {
		t.Error("tests collect garbage as often as servers do")
	}
	if !strings.Contains(s.lines[s.index("properties.json")], "-rapid.checks=500") {
		t.Error("make test tries properties as often as make nightly")
	}
}

func TestUnformattedFilesAreNamed(t *testing.T) {
	tr, s, _ := scripted(t, checkout, nil)
	s.says = map[string]string{"gofmt": "x.go"}
	if err := tr.format(); err == nil || !strings.Contains(err.Error(), "x.go") {
		t.Errorf("err is %v", err)
	}
}

func TestFuzzing(t *testing.T) {
	const target = "package a\n\nfunc FuzzA(f *testing.F) {}\n"
	top := folderWith(t, map[string]string{"go.work": "", "a/a_test.go": target, "outside/b_test.go": target})
	for said, fails := range map[string]bool{
		"elapsed: 3s\nPASS":                                           false,
		"context deadline exceeded\nFAIL":                             false,
		"Failing input written to x\ncontext deadline exceeded\nFAIL": true,
		"panic: index out of range\nFAIL":                             true,
	} {
		tr, s, out := scripted(t, top, map[string]string{"FUZZTIME": "3s"})
		s.says = map[string]string{"{{.Dir}}": filepath.Join(tr.top, "a"), "-list": "FuzzA\nok", "-fuzztime 3s": said}
		if strings.HasSuffix(said, "FAIL") {
			s.fails = "-fuzztime"
		}
		err := tr.fuzz()
		if (err != nil) != fails {
			t.Errorf("%q: %v", said, err)
		}
		if fails && !strings.Contains(err.Error(), said) {
			t.Errorf("the error has not what was said: %v", err)
		}
		if strings.Contains(out.String(), "outside") || s.index("^FuzzA$") < 0 {
			t.Errorf("ran %v", s.lines)
		}
	}
}

func TestWhatIsGeneratedIsCompared(t *testing.T) {
	top := miniature(t)
	tr, s, _ := scripted(t, top, nil)
	s.says = map[string]string{"./apireference": "new"}
	if err := tr.generated(); err == nil || !strings.Contains(err.Error(), "make generate:\ndocs/api.md") {
		t.Fatalf("a stale file: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(top, "docs/api.md")); err != nil || string(text) != "\n" {
		t.Errorf("the check has changed a file to %q, %v", text, err)
	}
	if err := tr.reference(); err != nil {
		t.Fatal(err)
	}
	if err := tr.generated(); err != nil {
		t.Fatal(err)
	}
	ran := len(s.lines)
	if err := tr.generated(); err != nil || len(s.lines) != ran {
		t.Errorf("what is known to be right was generated again: %v, %v", s.lines[ran:], err)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(filepath.Join(top, "api/file"), later, later); err != nil {
		t.Fatal(err)
	}
	if err := tr.generated(); err != nil || s.index("controller-gen") < 0 || len(s.lines) == ran {
		t.Errorf("what has changed was not generated again: %v, %v", s.lines[ran:], err)
	}
	s.fails = "controller-gen"
	if err := tr.generated(); err == nil {
		t.Error("a generator failed, and nobody said so")
	}
}

func TestSubjectsOfCommits(t *testing.T) {
	for subject, wrong := range map[string]bool{
		"chain: the list has static files": false,
		strings.Repeat("é", 72):            false,
		strings.Repeat("x", 73):            true,
		"Mend it.":                         true,
		"fixup! chain":                     true,
		"":                                 true,
	} {
		if got := faultOfSubject(subject); (got != "") != wrong {
			t.Errorf("%q: %q", subject, got)
		}
	}
	tr, s, out := scripted(t, checkout, nil)
	s.says = map[string]string{"git log": "1234567 Good\n89abcde Not good."}
	if err := tr.commits(); err == nil || !strings.Contains(err.Error(), "89abcde") || strings.Contains(err.Error(), "1234567") {
		t.Errorf("err is %v", err)
	}
	s.fails = "git log"
	if err := tr.commits(); err != nil || !strings.Contains(out.String(), "no history") {
		t.Errorf("a checkout without history: %v, %q", err, out)
	}
}

func TestCommandsOfTargets(t *testing.T) {
	top := miniature(t)
	for target, wants := range map[string][]string{
		"quickstart":  {"go build -o bin/sallyport ./cmd/sallyport", "bin/sallyport review"},
		"demo":        {"go run . -plan etcd kube-apiserver", "go build -o bin/demo ./test/demo", "bin/demo"},
		"bench":       {"go build -o bin/bench ./cmd/test/bench", "bin/bench -json"},
		"scale":       {"bin/bench -only scale -json"},
		"faults":      {"bin/faults -sallyport bin/sallyport -rows kill"},
		"conformance": {"e2e.test", "bin/conformance -testwebhook bin/testwebhook -out bin/conformance-results -runs 2"},
		"image":       {"run . image -version v1.2.3"},
		"release":     {"run . all -version v1.2.3", "-key KEY"},
		"rehearse":    {"./test/lab/shared env GOWORK=off go -C tools/release run ./rehearse"},
		"adopters":    {"./adopt -suites"},
		"upgrade":     {"-run " + upgrading},
		"provider":    {"go vet ./...", "go test ./..."},
		"generate":    {"crd:dir=config/crd", "templ generate", "-update", "./apireference"},
		"lint":        {"./kubeflow/...", "-types", "/golangci-lint run"},
		"verify":      {"go mod tidy -diff", "-modfile=kubernetes-1.36.mod", "./exported -most", "./budgets", "./compatibility"},
		"record-api":  {"./compatibility -record"},
		"nightly":     {"race-all.json", "-mutations 1000000", "-race ./admission -run TestNoChangeIsLostOverHTTP", "-runs 3 -runs 2", "bin/faults", "./rehearse", "./adopt", upgrading},
	} {
		tr, s, _ := scripted(t, top, map[string]string{
			"BENCH": "-json", "FAULTS": "-rows kill", "CONFORMANCE": "-runs 2", "VERSION": "v1.2.3", "SIGNING_KEY": "KEY", "SALLYPORT_BROWSER": "/bin/sh",
		})
		tr.goesOn = true
		s.says = map[string]string{"go env CC": "sh", "-n golangci-lint": "/golangci-lint", "-m -f": top}
		if err := targets[target](tr); err != nil {
			t.Errorf("make %s: %v", target, err)
		}
		for _, want := range wants {
			if s.index(want) < 0 {
				t.Errorf("make %s did not run %s, but\n%s", target, want, strings.Join(s.lines, "\n"))
			}
		}
	}
}
