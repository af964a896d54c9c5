// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func shell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(t.TempDir(), Program{Name: "shell", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"GREETING=hello"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func awaitLog(t *testing.T, p *Process, text string) {
	t.Helper()
	err := p.Await(t.Context(), time.Minute, text, func(context.Context) error {
		if !strings.Contains(p.Log(), text) {
			return errNotYet
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAProcessThatIsAskedToEndDoes(t *testing.T) {
	p := shell(t, `trap 'echo bye; exit 0' TERM; echo $GREETING; while :; do sleep 0.01; done`)
	awaitLog(t, p, "hello")
	if p.HasEnded() || p.Failed() != nil {
		t.Errorf("it has ended: %v", p.Failed())
	}
	if err := p.Stop(time.Minute); err != nil || !strings.Contains(p.Log(), "bye") {
		t.Errorf("%v; the log is %q", err, p.Log())
	}
}

func TestHowAProcessEndsIsTold(t *testing.T) {
	failing := shell(t, "echo no; exit 3")
	if err := failing.AwaitEnd(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("it failed, and %v is said", err)
	}
	ended := shell(t, "exit 0")
	<-ended.Ended
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // select chooses at random
		if err := ended.AwaitEnd(over); err != nil {
			t.Fatalf("of a process that had ended in time: %v", err)
		}
	}
	if err := failing.Failed(); err == nil || !strings.Contains(err.Error(), "no") {
		t.Errorf("the end of the log is missing: %v", err)
	}
	deaf := shell(t, `trap '' TERM; echo ready; while :; do sleep 0.01; done`)
	awaitLog(t, deaf, "ready")
	if err := deaf.Stop(50 * time.Millisecond); err == nil || !deaf.HasEnded() {
		t.Errorf("it does not listen, and %v is said", err)
	}
	asked := 0
	err := deaf.Await(t.Context(), time.Minute, "what never comes", func(context.Context) error { asked++; return errNotYet })
	if err == nil || asked > 0 {
		t.Errorf("of a process that has ended the condition was asked %d times: %v", asked, err)
	}
}

func TestWaitingEndsAtOnceWhereItIsInVain(t *testing.T) {
	hopeless := errors.New("hopeless")
	asked := 0
	err := Await(t.Context(), time.Minute, "a miracle", func(context.Context) error { asked++; return Final(hopeless) })
	if !errors.Is(err, hopeless) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	err = Await(t.Context(), time.Millisecond, "a miracle", func(context.Context) error { return hopeless })
	if !errors.Is(err, hopeless) || !strings.Contains(err.Error(), "a miracle") {
		t.Errorf("after the limit: %v", err)
	}
}

func TestALabNeedsItsBinaries(t *testing.T) {
	if err := CheckAssets("", "etcd"); err == nil {
		t.Error("no folder is not an error")
	}
	if err := CheckAssets(t.TempDir(), "etcd"); err == nil || !strings.Contains(err.Error(), "no etcd") {
		t.Errorf("of an empty folder: %v", err)
	}
}
