// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A process is a child with a log file.
type process struct {
	name  string
	log   string // file
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a process that reads and writes nothing of the person's who runs this.
func start(dir, name, binary string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the process has its own
	p.cmd = exec.Command(binary, args...)
	p.cmd.Env = append(os.Environ(), "HOME="+dir, "KUBECONFIG=")
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // its state says more
		close(p.ended)
	}()
	return p, nil
}

// kill ends the process without a word.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// failed is why the process is not there any more; nil while it is.
func (p *process) failed() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %s\n%s", p.name, p.cmd.ProcessState, p.logTail())
	default:
		return nil
	}
}

// logTail returns the end of what the process has written.
func (p *process) logTail() []byte {
	const limit = 3 << 10
	text, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(text[max(0, len(text)-limit):])
}

// await tries until the condition returns nil. It ends early if ctx does or the process
// has ended that the condition is about.
func await(ctx context.Context, what string, about *process, condition func(context.Context) error) error {
	const patience = 3 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if ended := about.failed(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waited in vain for %s: %w", what, err), ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
