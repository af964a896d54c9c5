// SPDX-License-Identifier: Apache-2.0

// Command demo shows the main job of Sallyport on a real API server, and checks
// that it is done right: it starts etcd and kube-apiserver, runs `sallyport serve`
// against them, applies a PodDefault, creates a pod that asks for it, and compares
// the pod as sent with the pod as stored. It exits with 1 if anything is not as it
// should be.
//
// With -cloud it shows another: a cloud controller manager that labels volumes.
//
// Usage: demo [-stay | -cloud]
//
// It runs in the root of the repository. KUBEBUILDER_ASSETS names the folder with
// etcd and kube-apiserver, with -stay also kubectl (`make controlplane` prints it), and
// bin/sallyport, or with -cloud bin/cloud-controller-manager, must have been built. With -stay
// it goes on until Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

func main() {
	stay := flag.Bool("stay", false, "keep everything running until Ctrl-C")
	cloud := flag.Bool("cloud", false, "show a cloud controller manager that labels volumes")
	flag.Parse()
	d := &demo{screen: newScreen(os.Stdout), command: filepath.Join("bin", "sallyport"), stay: *stay}
	d.show, d.hint = d.steps, "`make dev` is the same and stays up, for you to try your own PodDefaults."
	if *cloud {
		d.command, d.show, d.stay = filepath.Join("bin", "cloud-controller-manager"), d.cloudSteps, false
		d.hint = "docs/cloud.md says how to do that in a cloud controller manager of your own."
	}
	if err := d.runUntilSignal(); err != nil {
		d.screen.println("\n", d.screen.style(red, "demo: "), err.Error())
		os.Exit(1)
	}
}

// demo is one run.
type demo struct {
	screen  *screen
	command string
	stay    bool
	show    func(ctx context.Context, assets string) error
	hint    string // what to do next

	folder  string // removed at the end
	cluster *cluster
	server  *lab.Server
	wrong   int // checks that failed
}

// limit is for all steps together; staying up does not count.
const limit = 2 * time.Minute

func (d *demo) runUntilSignal() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	return d.run(ctx)
}

func (d *demo) run(ctx context.Context) (err error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return errors.New("KUBEBUILDER_ASSETS is not set; run `make demo`, which builds the control plane and sets it")
	}
	if d.command, err = filepath.Abs(d.command); err != nil {
		return err
	}
	if _, err := os.Stat(d.command); err != nil {
		return fmt.Errorf("%w; run `make demo` or `make demo-cloud`, which build it", err)
	}
	if d.folder, err = os.MkdirTemp("", "sallyport-demo-"); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.cleanUp())
	}()

	started := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
	defer cancel()
	err = d.show(limited, assets)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case limited.Err() != nil:
		return errors.Join(context.Cause(limited), err)
	case err != nil && d.server != nil:
		return fmt.Errorf("%w\n\nthe end of its log:\n%s", err, d.server.LogTail())
	case err != nil:
		return err
	case d.wrong > 0:
		return fmt.Errorf("%s not as it should be", count(d.wrong, "thing"))
	}
	d.screen.println("\n", d.screen.style(bold, fmt.Sprintf("All as it should be, in %s.", seconds(time.Since(started)))))
	if d.stay {
		return d.stayUp(ctx, assets)
	}
	d.screen.println(d.hint)
	return nil
}

// step shows and times one step.
func (d *demo) step(ctx context.Context, what string, do func(context.Context) (detail string, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.screen.doing(what)
	started := time.Now()
	detail, err := do(ctx)
	if err != nil {
		d.screen.failed(what, time.Since(started))
		return err
	}
	d.screen.done(what, detail, time.Since(started))
	return nil
}

func (d *demo) check(ok bool, format string, args ...any) {
	if !ok {
		d.wrong++
	}
	d.screen.check(ok, fmt.Sprintf(format, args...))
}

// stayUp waits for Ctrl-C, or for the end of the server.
func (d *demo) stayUp(ctx context.Context, assets string) error {
	d.screen.title("Yours to try, in another terminal")
	d.screen.println(`
  export KUBECONFIG=`, d.cluster.Kubeconfig, `
  export PATH=`, assets, `:$PATH     # kubectl

  kubectl -n `, namespace, ` get poddefaults
  kubectl -n `, namespace, ` get pod `, notebookName, ` -o yaml
  kubectl -n `, namespace, ` apply -f examples/poddefaults/http-proxy.yaml
  kubectl -n `, namespace, ` run web --image nginx --labels use-http-proxy=true
  kubectl -n `, namespace, ` get pod web -o jsonpath='{.spec.containers[0].env}'

  curl -s `, d.server.Metrics, `/metrics | grep ^sallyport
  tail -f `, d.server.LogFile(), `

There are no nodes and none of Kubernetes' controllers: pods are stored, not run, and a Deployment gets no
pods. In another namespace, first create the ServiceAccount of its pods:

  kubectl create namespace team-b && kubectl -n team-b create serviceaccount default

Ctrl-C stops everything and removes the files.`)
	select {
	case <-ctx.Done():
		d.screen.println("\nStopping.")
		return nil
	case <-d.server.Ended:
		return d.server.Failed()
	}
}

// cleanUp stops what runs, in the order in which a cluster would, and removes all
// files. It needs no context: it has limits of its own.
func (d *demo) cleanUp() error {
	var errs []error
	if d.server != nil {
		if err := d.server.Stop(10 * time.Second); err != nil {
			errs = append(errs, fmt.Errorf("%w; the end of its log:\n%s", err, d.server.LogTail()))
		}
	}
	if d.cluster != nil {
		d.cluster.Kill()
	}
	return errors.Join(append(errs, os.RemoveAll(d.folder))...)
}
