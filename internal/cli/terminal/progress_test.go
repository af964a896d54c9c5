// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A screenshot is an output that several goroutines write to.
type screenshot struct {
	mutex sync.Mutex
	bytes bytes.Buffer
}

func (s *screenshot) Write(text []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.bytes.Write(text)
}

// taken returns what was written since the last time.
func (s *screenshot) taken() string {
	synctest.Wait()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	text := s.bytes.String()
	s.bytes.Reset()
	return text
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &screenshot{}
		p := &Progress{out: out, width: func() int { return 24 }}
		terminal := &interleaved{progress: p, out: out}
		ctx := p.With(t.Context())
		Waiting(ctx, "reading pods")
		Waiting(ctx, "reading pods")
		time.Sleep(900 * time.Millisecond)
		if got := out.taken(); got != "" {
			t.Errorf("within a second it shows %q", got)
		}
		time.Sleep(200 * time.Millisecond)
		if got, want := out.taken(), "\r\x1b[Kreading pods (2), 1s"; got != want {
			t.Errorf("after a second it shows %q, want %q", got, want)
		}
		fmt.Fprint(terminal, "a note\n")
		if got, want := out.taken(), "\r\x1b[Ka note\n"; got != want {
			t.Errorf("a note is %q, want %q", got, want)
		}
		Waiting(ctx, "reading replicasets\x1b of all namespaces")
		time.Sleep(200 * time.Millisecond)
		if got, want := out.taken(), "\r\x1b[Kreading replicasets\ufffd of"; got != want {
			t.Errorf("a long line is %q, want %q", got, want)
		}
		fmt.Fprint(terminal, "Continue? ")
		out.taken()
		time.Sleep(time.Second)
		if got := out.taken(); got != "" {
			t.Errorf("it writes %q after a question", got)
		}
		fmt.Fprint(terminal, "yes\n")
		time.Sleep(200 * time.Millisecond)
		out.taken()
		p.Stop()
		p.Stop()
		if got, want := out.taken(), "\r\x1b[K"; got != want {
			t.Errorf("at its end it writes %q, want %q", got, want)
		}
		Waiting(ctx, "more")
		fmt.Fprint(terminal, "the result\n")
		time.Sleep(2 * time.Second)
		if got := out.taken(); got != "the result\n" {
			t.Errorf("after its end it writes %q", got)
		}
	})
}

func TestProgressIsOnlyForTerminals(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	p := NewProgress(file)
	if p != nil || p.Before(file) != file {
		t.Error("a file has a progress")
	}
	p.Stop()
	Waiting(p.With(t.Context()), "reading")
	Waiting(context.Background(), "reading")
	var out strings.Builder
	if (&Progress{}).Before(&out) != &out {
		t.Error("what is not a terminal is replaced")
	}
}
