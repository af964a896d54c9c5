// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-io/sallyport/test/lab"
)

// slowloris holds sockets to the replicas that say nothing, or say it a byte at a
// time, each in one of four ways, and opens another for each that is closed.
func slowloris(ctx context.Context, c *cluster, _ int, out *result) error {
	sockets, length := 2000, time.Minute
	if c.settings.short {
		sockets, length = 500, 12*time.Second
	}
	if err := raiseFileLimit(uint64(sockets) + 4096); err != nil {
		return err
	}
	live, err := c.deploy(ctx, 2, "--private-paths=false") // the attacker knows the path
	if err != nil {
		return err
	}
	stopWatching := c.watchReadiness(ctx, live)
	defer stopWatching()
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	slow, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	var open, most, closed atomic.Int64
	for i := range sockets {
		address := fmt.Sprintf("%s:%d", live[i%len(live)].address, webhookPort)
		group.Go(func() {
			lab.Sleep(slow, time.Duration(i)*2*time.Millisecond) // not all at the same moment
			for slow.Err() == nil {
				n := open.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				holdSocket(slow, address, i/len(live)%4)
				open.Add(-1)
				closed.Add(1)
				lab.Sleep(slow, 100*time.Millisecond)
			}
		})
	}
	lab.Sleep(ctx, length)
	stop()
	group.Wait()
	out.requireNothingLost(s.stop(ctx, out))
	if most.Load() < int64(sockets)*9/10 {
		out.problemf("only %d of %d sockets were open at one time", most.Load(), sockets)
	}
	out.notef("%d sockets, up to %d open at one time; the servers closed %d in %s", sockets, most.Load(), closed.Load(), length)
	stopWatching()
	return c.withdraw(ctx, live)
}

// holdSocket opens a socket and keeps it until the other side closes it, or ctx ends.
func holdSocket(ctx context.Context, address string, way int) {
	h := holding{address: address, secure: way > 0}
	switch way {
	case 0: // says nothing at all
	case 1: // TLS, and no request
	case 2: // a header that never ends
		h.begin, h.trickle = []byte("POST /apply-poddefault HTTP/1.1\r\nHost: x\r\n"), "X-Header: value\r\n"
	case 3: // a body that never ends
		h.begin = []byte("POST /apply-poddefault?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
		h.trickle = `{"kind":"AdmissionReview"`
	}
	h.hold(ctx)
}

// A holding is a connection that is held.
type holding struct {
	address string
	from    string // the caller's own address; empty for any
	secure  bool
	begin   []byte // sent at once
	trickle string // sent again and again, a byte a second
}

// hold holds it until the other side closes it, or ctx ends.
func (h holding) hold(ctx context.Context) {
	var dialer net.Dialer
	if h.from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(h.from)}
	}
	conn, err := dialer.DialContext(ctx, "tcp", h.address)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	stream := conn
	if h.secure {
		secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the caller is the attacker here
		if secure.HandshakeContext(ctx) != nil {
			return
		}
		stream = secure
	}
	if _, err := stream.Write(h.begin); err != nil {
		return
	}
	go func() { // ends with the connection
		for i := 0; len(h.trickle) > 0 && lab.Sleep(ctx, time.Second); i++ {
			if _, err := stream.Write([]byte{h.trickle[i%len(h.trickle)]}); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 512)
	for {
		if _, err := stream.Read(buffer); err != nil {
			return
		}
	}
}

// raiseFileLimit lets this process open that many files.
func raiseFileLimit(n uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Cur >= n {
		return nil
	}
	if limit.Max < n {
		return fmt.Errorf("the limit of open files is %d; raise it to %d (ulimit -Hn)", limit.Max, n)
	}
	limit.Cur = limit.Max
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
}
