// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A tree is a checkout, and how it is to be tested.
type tree struct {
	ctx      context.Context
	top      string // absolute
	settings settings
	out      io.Writer
	started  time.Time
	// start runs a command to its end. Tests of this package put their own here.
	start func(*exec.Cmd) error
	// what all commands get of the environment, besides that of this process
	env []string

	assets *assets

	// how a target is part of another one
	goesOn  bool     // a command that would replace this process is waited for
	all     bool     // unit tests leave to `apiserver` the packages that it tests whole
	drawing []string // packages whose properties are tried; empty for all
	stage   string   // under which name what tests said is kept; empty for that of the target
}

// settings are the variables of the Makefile, and SALLYPORT_BROWSER and KUBEBUILDER_ASSETS.
type settings struct {
	k8s             string        // release of Kubernetes; empty for the newest
	parallel        int           // packages with API servers that are tested at once, and tests of each
	checks          int           // random cases of each property
	fuzzTime        time.Duration // of each target
	reruns          int           // of a test that failed
	bench           []string      // flags
	faults          []string
	conformance     []string
	version         string
	signingKey      string
	tag             bool
	browser         string // its path, or "required"
	controlPlaneDir string // KUBEBUILDER_ASSETS
}

func newTree(ctx context.Context, top string, getenv func(string) string) (*tree, error) {
	absolute, err := filepath.Abs(top)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(absolute, "go.work")); err != nil {
		return nil, fmt.Errorf("%s is not the top of a checkout: it has no go.work", absolute)
	}
	s, err := settingsFrom(getenv)
	if err != nil {
		return nil, err
	}
	return &tree{
		ctx: ctx, top: absolute, settings: s, out: os.Stdout, started: time.Now(), start: (*exec.Cmd).Run,
		env: buildEnvironment(getenv("GOFLAGS")), assets: &assets{byComponents: map[string]func() (string, error){}},
	}, nil
}

func settingsFrom(getenv func(string) string) (settings, error) {
	s := settings{
		k8s: getenv("K8S"), bench: strings.Fields(getenv("BENCH")), faults: strings.Fields(getenv("FAULTS")),
		conformance: strings.Fields(getenv("CONFORMANCE")), version: getenv("VERSION"), signingKey: getenv("SIGNING_KEY"), tag: getenv("TAG") != "",
		browser: getenv("SALLYPORT_BROWSER"),
	}
	var faults []error
	number := func(name string, otherwise, least int) int {
		text := getenv(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			faults = append(faults, fmt.Errorf("%s=%s: a number of at least %d is wanted", name, text, least))
		}
		return n
	}
	s.parallel, s.checks, s.reruns = number("PARALLEL", 4, 1), number("CHECKS", 10000, 1), number("RERUNS", 0, 0)
	s.fuzzTime = time.Minute
	if text := getenv("FUZZTIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			faults = append(faults, fmt.Errorf("FUZZTIME=%s: a time such as 1m is wanted", text))
		}
		s.fuzzTime = d
	}
	if dir := getenv("KUBEBUILDER_ASSETS"); dir != "" {
		absolute, err := filepath.Abs(dir)
		faults = append(faults, err)
		s.controlPlaneDir = absolute
	}
	return s, errors.Join(faults...)
}

// buildEnvironment has the settings with which everything is compiled, so that vet, tests and commands share
// what the build cache has of Kubernetes. With cgo all above package net would be compiled again; without the
// tag gRPC, which a client of webhooks for authentication needs, brings pages with traces that nobody serves,
// and templates, for which the linker keeps all methods: 18 MB.
func buildEnvironment(goflags string) []string {
	if !strings.Contains(goflags, "grpcnotrace") {
		goflags = strings.TrimSpace(goflags + " -trimpath -tags=grpcnotrace")
	}
	return []string{"CGO_ENABLED=0", "GOFLAGS=" + goflags}
}

// With lazy, compilers, tests, and the API servers and commands that tests start collect garbage less often: that
// takes a fifth of the CPU time off a test run. Servers under test do not inherit it (lab.Serve).
const lazy = "GOGC=400"

// with returns a tree whose commands get these variables, too. An empty value unsets one.
func (t *tree) with(env ...string) *tree {
	other := *t
	other.env = append(append([]string{}, t.env...), env...)
	return &other
}

// alone returns a tree whose commands see one module, and not those of go.work with their higher versions.
func (t *tree) alone() *tree { return t.with("GOWORK=off") }

func (t *tree) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.ctx, args[0], args[1:]...) //nolint:gosec // commands are written here
	cmd.Dir = filepath.Join(t.top, filepath.FromSlash(dir))
	cmd.Env = t.environment()
	// Ctrl-C reaches the whole group; whoever ends this process alone wants the tests to end, too.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, t.out, os.Stderr
	return cmd
}

func (t *tree) environment() []string {
	env := os.Environ()
	for _, set := range t.env {
		name, value, _ := strings.Cut(set, "=")
		kept := env[:0:0]
		for _, e := range env {
			if !strings.HasPrefix(e, name+"=") {
				kept = append(kept, e)
			}
		}
		if env = kept; value != "" {
			env = append(env, set)
		}
	}
	return env
}

// run runs a command in a folder of the tree.
func (t *tree) run(dir string, args ...string) error {
	if err := t.start(t.command(dir, args...)); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// output returns what a command prints, without the last newline.
func (t *tree) output(dir string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := t.command(dir, args...)
	cmd.Stdout = &out
	if err := t.start(cmd); err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// combined returns what a command says on both streams, whether it fails or not.
func (t *tree) combined(dir string, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := t.command(dir, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	err := t.start(cmd)
	return strings.TrimRight(said.String(), "\n"), err
}

// replace makes this process the command, which so gets all signals itself.
func (t *tree) replace(args ...string) error {
	if t.goesOn {
		return t.run("", args...)
	}
	path := args[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.top, path)
	}
	if err := os.Chdir(t.top); err != nil {
		return err
	}
	return syscall.Exec(path, args, t.environment()) //nolint:gosec // commands are written here
}

func (t *tree) say(format string, args ...any) { _, _ = fmt.Fprintf(t.out, format+"\n", args...) }

// sideBySide runs all, waits for all, and returns what failed.
func (t *tree) sideBySide(stages ...func(*tree) error) error {
	failed := make([]error, len(stages))
	var all sync.WaitGroup
	for i, stage := range stages {
		all.Go(func() { failed[i] = stage(t) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// inOrder runs all until one fails.
func (t *tree) inOrder(stages ...func(*tree) error) error {
	for _, stage := range stages {
		if err := stage(t); err != nil {
			return err
		}
	}
	return nil
}

// What of the control plane is needed.
const (
	basicComponents = "etcd kube-apiserver kubectl"
	testComponents  = basicComponents + " kube-controller-manager kube-scheduler kwok helm kustomize"
)

// assets are folders with binaries of the control plane, which are built once a process.
type assets struct {
	mu           sync.Mutex
	byComponents map[string]func() (string, error)
}

// controlPlane builds what is missing of the control plane, with progress on stderr, and returns its folder. If
// KUBEBUILDER_ASSETS is set, that is checked, and none is built.
func (t *tree) controlPlane(components string) (string, error) {
	t.assets.mu.Lock()
	find := t.assets.byComponents[components]
	if find == nil {
		find = sync.OnceValues(func() (string, error) {
			args := []string{"go", "run", "."}
			if t.settings.k8s != "" {
				args = append(args, "-kubernetes", t.settings.k8s)
			}
			printed, err := t.alone().with(lazy, "KUBEBUILDER_ASSETS="+t.settings.controlPlaneDir).
				output("test/controlplane", append(args, strings.Fields(components)...)...)
			return printed[strings.LastIndexByte(printed, '\n')+1:], err
		})
		t.assets.byComponents[components] = find
	}
	t.assets.mu.Unlock()
	return find()
}

// withControlPlane returns a tree whose commands find the control plane.
func (t *tree) withControlPlane(components string) (*tree, error) {
	dir, err := t.controlPlane(components)
	if err != nil {
		return nil, err
	}
	return t.with("KUBEBUILDER_ASSETS=" + dir), nil
}

// build compiles packages. Compilers collect garbage when they have 1 GiB, and no sooner: a tenth less CPU time.
func (t *tree) build(packages ...string) error {
	for _, p := range packages {
		if err := t.with("GOGC=off", "GOMEMLIMIT=1GiB").run("", "go", "build", "-o", "bin/"+filepath.Base(p), p); err != nil {
			return err
		}
	}
	return nil
}

// hasCCompiler tells whether the race detector can be used: it needs cgo.
func (t *tree) hasCCompiler() bool {
	cc, err := t.with("CGO_ENABLED=1").output("", "go", "env", "CC")
	if err != nil || cc == "" {
		return false
	}
	_, err = exec.LookPath(strings.Fields(cc)[0])
	return err == nil
}

// niced is before a command that takes only the time which others leave.
func niced(args ...string) []string {
	return append([]string{"nice", "-n", "19"}, args...)
}
