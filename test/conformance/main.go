// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command conformance runs the cases with which Kubernetes tests admission and conversion
// webhooks, as its module has them, against Sallyport: against examples/testwebhook, which
// answers as the test webhooks of Kubernetes do.
//
// Usage, from the repository root (`make conformance` does all of it):
//
//	KUBEBUILDER_ASSETS=folder go run ./test/conformance -testwebhook FILE [-runs N] [-focus REGEXP] [-out FOLDER]
//
// The folder of KUBEBUILDER_ASSETS is the one that test/controlplane prints when it has
// built etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok and
// e2e.test. README.md says how the pieces fit together, and what is not as in a cluster
// with kubelets.
//
// Everything runs in a network namespace and a process namespace of this run, which need
// root or user namespaces, and of which nothing is left when the run ends, however it
// ends. The exit status is 0 if every case has passed in every run, 1 otherwise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// Exit statuses.
const (
	exitError  = 1
	exitFailed = 3 // of the half inside: a case has not passed
)

// errFailed is the end of a run in which a case did not pass.
var errFailed = errors.New("a case has not passed, see the table")

func main() { os.Exit(execute(os.Args[1:])) }

// execute is one of the two halves of a run, and returns the exit status.
func execute(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if dir := lab.Enclosed(); dir != "" {
		if err = mainInside(ctx, dir, args); errors.Is(err, errFailed) {
			return exitFailed
		}
	} else {
		err = mainOutside(ctx, args)
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(os.Stderr, "conformance:", err)
	return exitError
}

// settings are what the command line says.
type settings struct {
	webhook string
	runs    int
	focus   string
	out     string
}

// groups are the cases that are about webhooks.
const groups = `\[sig-api-machinery\] (AdmissionWebhook|CustomResourceConversionWebhook) `

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.webhook, "testwebhook", "", "the binary `file` of examples/testwebhook; required")
	flags.IntVar(&s.runs, "runs", 1, "how many `times` the cases are run, in the same cluster")
	flags.StringVar(&s.focus, "focus", groups, "regular `expression` for the names of the cases to run")
	flags.StringVar(&s.out, "out", "", "`folder` for table.md and a JUnit file for each run; empty for none")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	var errs []error
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	if s.webhook == "" {
		errs = append(errs, errors.New("-testwebhook: name the binary of examples/testwebhook"))
	}
	if s.runs < 1 {
		errs = append(errs, fmt.Errorf("-runs %d: must be positive", s.runs))
	}
	for _, path := range []*string{&s.webhook, &s.out} {
		if *path != "" {
			absolute, err := filepath.Abs(*path)
			errs = append(errs, err)
			*path = absolute
		}
	}
	return s, errors.Join(errs...)
}

// mainOutside checks what is needed, and runs the rest in an enclosure.
func mainOutside(ctx context.Context, args []string) error {
	s, err := parseSettings(args, os.Stderr)
	if err != nil {
		return err
	}
	if err := lab.CheckAssets(os.Getenv("KUBEBUILDER_ASSETS"), binaries...); err != nil {
		return err
	}
	if s.out != "" {
		if err := os.MkdirAll(s.out, 0o755); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "sallyport-conformance-")
	if err != nil {
		return err
	}
	err = lab.RunEnclosed(ctx, dir, args, os.Stdout, os.Stderr)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitFailed {
		err = errFailed
	}
	if err == nil || ctx.Err() != nil { // who stops a run does not want to know why it ended
		return errors.Join(err, os.RemoveAll(dir))
	}
	fmt.Fprintln(os.Stderr, "conformance: logs of all processes are in", dir)
	return errors.Join(err, os.RemoveAll(filepath.Join(dir, "etcd"))) // which is large
}

// mainInside is what runs in the enclosure.
func mainInside(ctx context.Context, dir string, args []string) error {
	s, err := parseSettings(args, os.Stderr)
	if err != nil {
		return err
	}
	if err := lab.SetUpEnclosure(podNetwork, serverAddress, serviceNetwork); err != nil {
		return err
	}
	since := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "[%6.1fs] %s\n", time.Since(since).Seconds(), fmt.Sprintf(format, args...))
	}
	c := &cluster{dir: dir, assets: os.Getenv("KUBEBUILDER_ASSETS"), webhook: s.webhook}
	defer c.close()
	if err := c.open(ctx, say); err != nil {
		return err
	}
	var results results
	for n := range s.runs {
		say("run %d of %d", n+1, s.runs)
		if err := c.runSuite(ctx, s, n+1, &results, say); err != nil {
			return err
		}
		if err := errors.Join(context.Cause(ctx), c.failed()); err != nil {
			return err
		}
	}
	table := results.table()
	fmt.Print(table)
	if s.out != "" {
		if err := os.WriteFile(filepath.Join(s.out, "table.md"), []byte(table), 0o644); err != nil {
			return err
		}
	}
	if !results.hold() {
		return errFailed
	}
	return nil
}
