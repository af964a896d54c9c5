// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience limits how long a test waits for an event. The test continues as soon as it happens.
const patience = 30 * time.Second

func TestASecondSignalEndsTheServerAtOnce(t *testing.T) {
	cmd, stderr, ended := start(t, append(quick(t), "--config", configured(t, "serving: {drainMin: 1h, drainTimeout: 1h}\n"))...)
	stderr.await(t, "serving webhooks")
	sendSignal(t, cmd, syscall.SIGTERM)
	stderr.await(t, "draining")
	// A second signal at the same moment would merge with the first. SIGINT is not sent: if a shell
	// runs the tests in the background, all that they start ignores it.
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	tooLong := time.After(patience)
	for {
		select {
		case <-ended:
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
				t.Errorf("ended with %v, stderr:\n%s", cmd.ProcessState, stderr)
			}
			return
		case <-again.C:
			_ = cmd.Process.Signal(syscall.SIGTERM) // the process may have ended
		case <-tooLong:
			t.Fatalf("it goes on draining, stderr:\n%s", stderr)
		}
	}
}

func TestASignalEndsTheServerInOrder(t *testing.T) {
	for name, args := range map[string][]string{
		"that registers itself":            nil,
		"that somebody else registers":     {"--registration", "None"},
		"without metrics, logging in JSON": {"--metrics-bind-address", "0", "--log-format", "json"},
		"with an authority that is shared": {"--authority-secret", "sallyport-system/sallyport-authority"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stderr, ended := start(t, append(append(quick(t), "--config", configured(t, "serving: {drainMin: 0s, drainTimeout: 0s}\n")), args...)...)
			stderr.await(t, "starting")
			stderr.await(t, "serving webhooks")
			sendSignal(t, cmd, syscall.SIGTERM)
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatalf("it does not end, stderr:\n%s", stderr)
			}
			if code := cmd.ProcessState.ExitCode(); code != exitOK {
				t.Errorf("ended with %v, stderr:\n%s", cmd.ProcessState, stderr)
			}
			stderr.await(t, "drained")
		})
	}
}

func TestASignalEndsAReviewThatWaitsForStdin(t *testing.T) {
	// The file is a pipe: opening it shows that the command reads it.
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, stderr, ended := start(t, "review", "-f", pipe)
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }()
	sendSignal(t, cmd, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatalf("it does not end, stderr:\n%s", stderr)
	}
}

// start runs the command in its own process, with an open stdin.
func start(t *testing.T, args ...string) (*exec.Cmd, *output, <-chan struct{}) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &output{}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the process state has the result
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return cmd, stderr, ended
}

func sendSignal(t *testing.T, cmd *exec.Cmd, sent os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sent); err != nil {
		t.Fatal(err)
	}
}

// An output is safe for one writer and one reader.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await returns the first line that contains the text. It waits for the line.
func (o *output) await(t *testing.T, text string) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for line := range strings.Lines(o.String()) {
			if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
				return line
			}
		}
	}
	t.Fatalf("it does not say %q:\n%s", text, o)
	return ""
}
