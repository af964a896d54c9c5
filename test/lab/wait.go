// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// FreePort finds a TCP port of 127.0.0.1 that nobody listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

// Eventually asks again and again until the condition holds; an error is a reason why it
// does not yet. What names it for people. The test fails after the limit, or if ctx ends.
func Eventually(ctx context.Context, t testing.TB, limit time.Duration, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		ok, err := condition(ctx)
		if ok && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s (last error: %v)", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Log keeps what a process writes, and may be read meanwhile.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns all that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
