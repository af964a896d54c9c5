// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// exhausted is a listener of a process that has run out of file descriptors for a
// while.
type exhausted struct {
	net.Listener
	fails atomic.Int32
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.fails.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestTheServerOutlivesALackOfFileDescriptors(t *testing.T) {
	none := &exhausted{}
	none.fails.Store(20)
	bubbleBehind(t, func(l net.Listener) net.Listener { none.Listener = l; return none }, unchanged, func(t *testing.T, h *harness) {
		time.Sleep(time.Minute)
		select {
		case err := <-h.ended:
			t.Fatalf("Run ended with %v", err)
		default:
		}
		h.post("/echo", "hello").expect(t, 200, "hello")
	})
}
