// SPDX-License-Identifier: Apache-2.0

// Command shared runs a command with an API server that the tests which it runs share: they
// find it by lab.APIServer. It ends with the status of the command.
//
// Usage, with KUBEBUILDER_ASSETS naming the folder of etcd and kube-apiserver:
//
//	go run ./test/lab/shared COMMAND [ARGUMENT...]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/sallyport-io/sallyport/test/lab"
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "shared:", err)
	}
	os.Exit(status)
}

// run returns the status of the command, or 1 with an error if it was not run to its end.
func run(command []string) (status int, err error) {
	if len(command) == 0 {
		return 1, errors.New("usage: shared COMMAND [ARGUMENT...]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	folder, err := os.MkdirTemp("", "sallyport-shared-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	cp, err := lab.StartControlPlane(ctx, folder, lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: lab.SharedFlags})
	defer cp.Kill()
	if err != nil {
		return 1, err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), lab.SharedVariable+"="+cp.Kubeconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if failed := cp.APIServer.Failed(); failed != nil {
		return 1, failed
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil // -1 if a signal has ended it
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
