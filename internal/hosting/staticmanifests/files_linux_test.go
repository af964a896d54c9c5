// SPDX-License-Identifier: Apache-2.0

package staticmanifests_test

import (
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sallyport-io/sallyport/admission"
)

// TestConfigurationsStayWholeOnAFullDisk limits the size of files to a few bytes for a while.
// kube-apiserver keeps reading the old manifests, and no other files remain.
func TestConfigurationsStayWholeOnAFullDisk(t *testing.T) {
	f := newFiles(t, "full", authority(t), webhook(admission.TypeMutating, "a.full.example.com", "pods"))
	f.start()
	f.eventually("registered", func() bool { return f.Registered() == nil })
	first := f.read("mutating")

	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ) // so that a write fails instead
	defer signal.Reset(syscall.SIGXFSZ)
	set := func(limit syscall.Rlimit) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	set(syscall.Rlimit{Cur: 16, Max: before.Max})
	f.ca.Store(new(authority(t)))
	f.Notify()
	f.eventually("what cannot be written is the status", func() bool { return f.Registered() != nil })
	status, now := f.Registered(), f.read("mutating")
	set(before)
	if now != first {
		t.Errorf("the file was %d bytes and has %d (%v)", len(first), len(now), status)
	}
	f.eventually("nothing is left behind", func() bool {
		left, err := filepath.Glob(filepath.Join(f.options.Directory, "*", ".*"))
		return err == nil && len(left) == 0
	})
	f.eventually("it is written once there is room", func() bool { return f.Registered() == nil && f.read("mutating") != first })
}
