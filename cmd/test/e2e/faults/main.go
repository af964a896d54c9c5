// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command faults breaks things around `sallyport serve`, and around the API server
// that calls it, while pods are created all the time, and says what was lost.
//
// Usage, from the repository root, with KUBEBUILDER_ASSETS naming the folder of etcd
// and kube-apiserver (`make faults` does both):
//
//	go run ./cmd/test/e2e/faults [-short] [-rows NAME,...] [-json] [-sallyport FILE]
//
// # Method
//
// All processes are real: etcd, kube-apiserver, and two or three replicas of sallyport
// serve, each on an address of its own. They live in a network namespace and a process
// namespace of this run, which need root or user namespaces, and of which nothing is
// left when the run ends, however it ends.
//
// The API server reaches the replicas through a Service without selector, over
// HTTP/1.1, with aggregator routing, so that it spreads its calls itself. This command
// plays the endpoints controller and the kubelet: it writes an EndpointSlice for each
// replica and keeps it from what /readyz says. One row puts haproxy in between instead,
// one a balancer behind a URL: open connections outlive their endpoint there, as with
// kube-proxy.
//
// Pods are created at a steady rate, whether answers come or not. Each selects some of
// eight PodDefaults by its labels. Each answer is compared with what should have been
// injected, and so is each pod that a watch sees being stored, those included whose
// create is said to have failed.
//
// A row of the table is a fault, repeated. Its line says how many creates were made,
// how many failed, how many were stored without one of their PodDefaults, and whether
// that is what the row allows. The exit status is 0 if all rows hold, 1 otherwise.
// -short goes through the same motions with few rounds, short drains and a low rate.
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
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sallyport-io/sallyport/test/lab"
)

func main() {
	if lab.Enclosed() != "" {
		os.Exit(mainInside(os.Args[1:]))
	}
	os.Exit(mainOutside(os.Args[1:], os.Stdout, os.Stderr))
}

// settings are what the command line says.
type settings struct {
	short  bool
	asJSON bool
	list   bool
	rows   []string // nil means all
	binary string   // of sallyport; built if empty
}

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&s.short, "short", false, "few rounds at a low rate, in about 3 minutes")
	flags.BoolVar(&s.asJSON, "json", false, "print the table as JSON")
	flags.BoolVar(&s.list, "list", false, "print the names of the rows, and end")
	names := flags.String("rows", "", "`names` of the rows to run, separated by commas; empty for all")
	flags.StringVar(&s.binary, "sallyport", "", "the sallyport binary to test; built from ./cmd/sallyport if empty")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *names != "" {
		s.rows = strings.Split(*names, ",")
	}
	_, err := chooseRows(s.rows, s.short)
	return s, err
}

// mainOutside prepares what needs the outside world, and runs the rest in an
// enclosure. It returns the exit status.
func mainOutside(args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintln(stderr, "faults:", err)
		return 1
	}
	s, err := parseSettings(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return fail(err)
	case s.list:
		for _, r := range rows {
			fmt.Fprintf(stdout, "%-22s %s\n", r.name, r.what)
		}
		return 0
	}
	if err := lab.CheckAssets(os.Getenv("KUBEBUILDER_ASSETS"), "etcd", "kube-apiserver"); err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp("", "sallyport-faults-")
	if err != nil {
		return fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if s.binary == "" {
		if s.binary, err = buildBinary(ctx, dir); err != nil {
			_ = os.RemoveAll(dir)
			return fail(err)
		}
	}
	if s.binary, err = filepath.Abs(s.binary); err != nil {
		return fail(err)
	}
	err = lab.RunEnclosed(ctx, dir, append([]string{"-sallyport", s.binary}, args...), stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "faults: logs of all processes are in", dir)
		return fail(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fail(err)
	}
	return 0
}

// buildBinary builds the command under test as a release is built.
func buildBinary(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "sallyport")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "github.com/sallyport-io/sallyport/cmd/sallyport")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building sallyport: %w\n%s", err, out)
	}
	return binary, nil
}

// errFailed is the end of a run in which a row does not hold.
var errFailed = errors.New("a row does not hold, see the table")

// mainInside is what runs in the enclosure.
func mainInside(args []string) int {
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(args) == 1 && args[0] == hoardCommand {
		err = hoardAsTold(ctx, os.Stdin, os.Stdout)
	} else {
		err = runInside(ctx, args)
	}
	if err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, "faults:", err)
		}
		return 1
	}
	return 0
}

func runInside(ctx context.Context, args []string) error {
	s, err := parseSettings(args, os.Stderr)
	if err != nil {
		return err
	}
	return run(ctx, s, lab.Enclosed(), os.Stdout, os.Stderr)
}

func run(ctx context.Context, s settings, dir string, stdout, stderr io.Writer) (err error) {
	chosen, err := chooseRows(s.rows, s.short)
	if err != nil {
		return err
	}
	if err := lab.SetUpEnclosure(replicaNetwork, serverAddress, serviceNetwork); err != nil {
		return err
	}
	progress := newProgress(stderr)
	cluster, err := openCluster(ctx, dir, s, progress)
	if err != nil {
		return err
	}
	defer cluster.close()
	var report report
	report.describe(cluster)
	for _, r := range chosen {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		report.Rows = append(report.Rows, cluster.runRow(ctx, r))
	}
	if s.asJSON {
		err = report.writeJSON(stdout)
	} else {
		err = report.writeText(stdout)
	}
	if err == nil && !report.holds() {
		err = errFailed
	}
	return err
}

// A progress prints what is being tried.
type progress struct {
	w     io.Writer
	since time.Time
}

func newProgress(w io.Writer) progress { return progress{w: w, since: time.Now()} }

func (p progress) sayf(format string, args ...any) {
	fmt.Fprintf(p.w, "[%6.1fs] %s\n", time.Since(p.since).Seconds(), fmt.Sprintf(format, args...))
}
