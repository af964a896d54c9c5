// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A process is a child with a log file.
type process struct {
	name  string
	log   string // file; a process of the same name before it has the same
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once ended

	confined bool // the kernel kills it if it takes more memory than it may
}

func startProcess(dir, name, binary string, args ...string) (*process, error) {
	return startProcessLimited(dir, name, binary, 0, args...)
}

// startProcessLimited is startProcess with as many bytes of memory; 0 for any.
func startProcessLimited(dir, name, binary string, memory int, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the process has its own
	p.cmd = exec.Command(binary, args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the run to handle
	if memory > 0 {                                         // as the container has it: a part is for what Go's runtime does not count
		p.cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", memory/10*9))
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	ended := func() {}
	if memory > 0 {
		ended = p.confine(memory)
	}
	go func() {
		p.err = p.cmd.Wait()
		ended()
		close(p.ended)
	}()
	return p, nil
}

// writeFile writes a file for a process.
func writeFile(name, text string) error { return os.WriteFile(name, []byte(text), 0o600) }

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // it may have ended

// kill ends the process without a word.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
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
