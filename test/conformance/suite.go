// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// runSuite runs the cases once and adds to the results. What becomes of them is not an error;
// an error is that they could not be run to the end.
func (c *cluster) runSuite(ctx context.Context, s settings, n int, results *results, say func(string, ...any)) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	log, err := os.Create(c.file(fmt.Sprintf("e2e.test-%d.log", n)))
	if err != nil {
		return errors.Join(err, write.Close())
	}
	defer func() { _ = log.Close() }()
	// There are neither clouds nor logs of pods, and the node of kwok has not been told to
	// be ready for pods by a cloud.
	suite := exec.CommandContext(ctx, c.asset("e2e.test"),
		"-kubeconfig", c.Kubeconfig, "-kubectl-path", c.asset("kubectl"),
		"-provider", "skeleton", "-allowed-not-ready-nodes=-1", "-disable-log-dump",
		"-cases", "3", "-ginkgo.focus", s.focus, "-ginkgo.no-color", "-ginkgo.v", "-ginkgo.timeout", "45m",
	)
	suite.Env = append(os.Environ(), "HOME="+c.dir)
	suite.Dir = c.dir
	suite.ExtraFiles = []*os.File{write}
	suite.Stdout, suite.Stderr = log, log
	suite.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Not by a signal that it handles: it would go on cleaning up for minutes.
	suite.Cancel = func() error { return syscall.Kill(-suite.Process.Pid, syscall.SIGKILL) }
	err = suite.Start()
	_ = write.Close() // the suite has its own
	if err != nil {
		return fmt.Errorf("starting e2e.test: %w", err)
	}
	lines := bufio.NewScanner(read)
	lines.Buffer(nil, 1<<20)
	run := results.begin()
	for lines.Scan() {
		var done outcome
		if err := json.Unmarshal(lines.Bytes(), &done); err != nil {
			return fmt.Errorf("what e2e.test tells of a case: %w", err)
		}
		say("%-7s %5.1fs  %s", done.State, done.Seconds, done.shortName())
		if done.State != passed && done.Message != "" {
			say("        %s", firstLine(done.Message))
		}
		run.add(done)
	}
	err = errors.Join(lines.Err(), suite.Wait())
	if s.out != "" {
		if err := writeJUnit(s.out, n, run); err != nil {
			return err
		}
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(run.outcomes) == 0:
		return fmt.Errorf("e2e.test, whose log is %s: %w", log.Name(), errors.Join(errNoCase, err))
	case errors.As(err, &exit) && !run.passes():
		return nil // it is in the table
	case err != nil:
		return fmt.Errorf("e2e.test, whose log is %s: %w", log.Name(), err)
	}
	return nil
}

var errNoCase = errors.New("no case was run: no name matches the focus, or what comes before the first case has failed")
