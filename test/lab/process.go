// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Program is what [Start] starts.
type Program struct {
	Name  string // for people, and of the log
	Path  string // of the binary
	Args  []string
	Dir   string    // the working directory; that of this process if empty
	Env   []string  // NAME=VALUE, besides what this process has
	Stdin io.Reader // nil for none
	// OwnGroup keeps it from a terminal's Ctrl-C, which is then for this process to pass on.
	OwnGroup bool
}

// A Process is a child with a log file.
type Process struct {
	Name  string
	Ended <-chan struct{} // closed when it has

	cmd *exec.Cmd
	log string
	err error
}

// Start starts a process. Its log is NAME.log in the folder, after what a process of the same
// name has written there before.
func Start(folder string, c Program) (*Process, error) {
	p := &Process{Name: c.Name, log: filepath.Join(folder, c.Name+".log")}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the process has its own
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Dir = c.Dir
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = c.Stdin, out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: c.OwnGroup}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	ended := make(chan struct{})
	p.Ended = ended
	go func() {
		p.err = p.cmd.Wait()
		close(ended)
	}()
	return p, nil
}

// StartUntilEnd is [Start] in a test, at whose end the process is killed: it may not have
// ended before.
func StartUntilEnd(t testing.TB, c Program) *Process {
	t.Helper()
	p, err := Start(t.TempDir(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Failed(); err != nil {
			t.Error(err)
		}
		p.Kill()
	})
	return p
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal, unless the process has ended.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill ends the process without a word, if it has not ended.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.Ended
}

// Stop asks the process to end, as Kubernetes does, and kills it after the limit. It returns
// an error if it did not end well or in time. A process that has ended before is left alone.
func (p *Process) Stop(limit time.Duration) error {
	p.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return p.AwaitEnd(ctx)
}

// AwaitEnd waits until the process has ended, and kills it if ctx ends before. It returns an
// error if it did not end well or in time.
func (p *Process) AwaitEnd(ctx context.Context) error {
	select {
	case <-p.Ended:
	case <-ctx.Done():
		if !p.HasEnded() { // in time: ctx may have ended long ago
			p.Kill()
			return fmt.Errorf("%s had to be killed: %w", p.Name, ctx.Err())
		}
	}
	if p.err != nil {
		return fmt.Errorf("%s did not end well: %w", p.Name, p.err)
	}
	return nil
}

// HasEnded tells whether the process has.
func (p *Process) HasEnded() bool {
	select {
	case <-p.Ended:
		return true
	default:
		return false
	}
}

// Failed is an error, with the end of the log, if the process has ended; nil while it runs.
func (p *Process) Failed() error {
	if !p.HasEnded() {
		return nil
	}
	return fmt.Errorf("%s has ended: %s; the end of its log:\n%s", p.Name, p.cmd.ProcessState, p.LogTail())
}

// LogFile is where the process writes.
func (p *Process) LogFile() string { return p.log }

// Log is all that the process has written so far.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// LogTail is the end of that.
func (p *Process) LogTail() string {
	const limit = 4 << 10
	text := []byte(p.Log())
	return string(bytes.TrimSpace(text[max(0, len(text)-limit):]))
}

// Await is [Await] for a condition about the process: it fails at once when that has ended.
func (p *Process) Await(ctx context.Context, limit time.Duration, what string, condition func(context.Context) error) error {
	return Await(ctx, limit, what, func(ctx context.Context) error {
		if err := p.Failed(); err != nil {
			return Final(err)
		}
		return condition(ctx)
	})
}
