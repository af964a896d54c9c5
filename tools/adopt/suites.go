// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A suite is the tests of a project that call webhooks on a server. They run as they are, and then with our server.
type suite struct {
	module   string // of which a module proxy has the tests
	packages []string
	// files create the server, relative to the module's folder. Without any, the suite runs with the library's requirements alone.
	files []string
	// prepare makes what the module lacks. It may be nil.
	prepare func(folder string) error
}

// suites need KUBEBUILDER_ASSETS, with kustomize.
var suites = []suite{
	{module: controllerRuntime, packages: []string{"./pkg/webhook"}, files: []string{"pkg/webhook/server_test.go", "pkg/webhook/webhook_integration_test.go"}},
	{module: "sigs.k8s.io/jobset@v0.12.0", packages: []string{"./test/integration/webhook"}, files: []string{"test/integration/webhook/suite_test.go"}},
	{module: "sigs.k8s.io/jobset@v0.12.0", packages: []string{"./test/integration/controller"}},
	{module: "sigs.k8s.io/kueue@v0.17.0", packages: []string{"./test/integration/singlecluster/webhook/core"}, files: []string{"test/integration/framework/framework.go"}, prepare: kueueDefinitions},
	{module: "sigs.k8s.io/kueue@v0.17.0", packages: []string{"./test/integration/singlecluster/webhook/jobs"}, files: []string{"test/integration/framework/framework.go"}, prepare: kueueDefinitions},
}

// kueueDefinitions does what `make kustomize-crd dep-crds` does there. Their module has no output of it.
func kueueDefinitions(folder string) error {
	for _, jobs := range []struct{ module, from, to string }{
		{"github.com/kubeflow/mpi-operator", "manifests/base", "mpi-operator"},
		{"github.com/kubeflow/training-operator", "manifests/base/crds", "training-operator-crds"},
		{"github.com/kubeflow/trainer/v2", "manifests/base/crds", "kf-trainer-crds"},
		{"github.com/ray-project/kuberay/ray-operator", "config/crd/bases", "ray-operator-crds"},
		{"github.com/project-codeflare/appwrapper", "config/crd/bases", "appwrapper-crds"},
		{"sigs.k8s.io/jobset", "config/components/crd/bases", "jobset-operator"},
	} {
		source, err := downloaded(folder, jobs.module)
		if err != nil {
			return err
		}
		to := filepath.Join(folder, "dep-crds", jobs.to)
		if err := os.CopyFS(to, os.DirFS(filepath.Join(source, filepath.FromSlash(jobs.from)))); err != nil {
			return err
		}
	}
	// The MPI operator's own definition of MPIJob is the one they use.
	if err := os.Remove(filepath.Join(folder, "dep-crds", "training-operator-crds", "kubeflow.org_mpijobs.yaml")); err != nil {
		return err
	}
	definitions := filepath.Join(folder, "config", "components", "crd")
	built, err := kustomized(definitions)
	if err != nil {
		return err
	}
	output := filepath.Join(definitions, "_output")
	return errors.Join(os.MkdirAll(output, 0o755), os.WriteFile(filepath.Join(output, "crds-with-webhooks.yaml"), built, 0o600))
}

// kustomized returns the manifests of a kustomization.
func kustomized(folder string) ([]byte, error) {
	built, err := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kustomize"), "build", folder).Output()
	if err != nil {
		return nil, fmt.Errorf("kustomize build: %w", err)
	}
	return built, nil
}

// runSuites prints what passes with each server. The error names what passes only with theirs.
func runSuites(out io.Writer, top string, only func(module string) bool) error {
	var errs []error
	for _, s := range suites {
		if !only(s.module) {
			continue
		}
		theirs, ours, err := s.run(top)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.module, err))
			continue
		}
		fmt.Fprintf(out, "%s %s: %s with its own server, %s with ours\n", s.module, strings.Join(s.packages, " "), theirs, ours)
		if theirs.passed == 0 {
			errs = append(errs, fmt.Errorf("%s: no spec passes with its own server, so that this shows nothing:\n%s", s.module, theirs.output))
		}
		if ours.passed < theirs.passed {
			errs = append(errs, fmt.Errorf("%s: %d specs fail with our server:\n%s", s.module, theirs.passed-ours.passed, ours.output))
		}
	}
	return errors.Join(errs...)
}

// counts are those of a run of a suite.
type counts struct {
	passed, total int
	output        string
}

func (c counts) String() string { return fmt.Sprintf("%d of %d specs", c.passed, c.total) }

func (s suite) run(top string) (theirs, ours counts, err error) {
	tmp, err := os.MkdirTemp("", "adopt-")
	if err != nil {
		return counts{}, counts{}, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err = copied(tmp, s.module); err == nil && s.prepare != nil {
		err = s.prepare(tmp)
	}
	if err != nil {
		return counts{}, counts{}, err
	}
	if theirs, err = s.specs(tmp); err != nil {
		return counts{}, counts{}, err
	}
	for _, name := range s.files {
		if err := withOurServer(filepath.Join(tmp, filepath.FromSlash(name))); err != nil {
			return counts{}, counts{}, err
		}
	}
	if err := require(tmp, top, append([]string{"-t"}, s.packages...)...); err != nil {
		return counts{}, counts{}, err
	}
	ours, err = s.specs(tmp)
	return theirs, ours, err
}

var ran = regexp.MustCompile(`Ran (\d+) of \d+ Specs in [\d.]+ seconds\s+\S+ .*?(\d+) Passed`)

// specs runs the suite. A failed spec is no error.
func (s suite) specs(folder string) (counts, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-v"}, s.packages...)...)
	command.Dir, command.Env = folder, environment()
	output, err := command.CombinedOutput()
	found := ran.FindAllSubmatch(colours.ReplaceAll(output, nil), -1)
	if len(found) != len(s.packages) {
		return counts{}, fmt.Errorf("go test: %w; it has %d reports of ginkgo, want %d:\n%s", err, len(found), len(s.packages), output)
	}
	total := counts{output: string(output)}
	for _, report := range found {
		n, _ := strconv.Atoi(string(report[1])) // digits
		passed, _ := strconv.Atoi(string(report[2]))
		total.total, total.passed = total.total+n, total.passed+passed
	}
	return total, nil
}

var colours = regexp.MustCompile(`\x1b\[[\d;]*m`)

// defaultServer is controller-runtime's server without its constructor.
var defaultServer = regexp.MustCompile(`(?s)&webhook\.DefaultServer\{Options: (webhook\.Options\{.*?\n\t\t\})\}`)

// withOurServer replaces what creates a server in a file.
func withOurServer(name string) error {
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(source), "webhook.NewServer(", "sallyport.NewServer(")
	text = defaultServer.ReplaceAllString(text, "sallyport.NewServer($1)")
	if text == string(source) {
		return fmt.Errorf("%s creates no server", name)
	}
	text = strings.Replace(text, "import (", "import (\n\tsallyport \""+library+"/controllerruntime\"", 1)
	return os.WriteFile(name, []byte(text), 0o600)
}
