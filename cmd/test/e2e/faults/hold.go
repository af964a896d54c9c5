// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-io/sallyport/test/lab"
)

// hoardCommand is the argument with which this program holds connections.
const hoardCommand = "hoard"

// An attack is what callers do who hold connections. Whoever loses one opens another.
type attack struct {
	Callers  int
	Every    time.Duration // between the first connections of two callers
	Pause    time.Duration // of a caller before it opens another
	Length   time.Duration
	Holdings []holding // the callers take turns
}

// A toll is what an attack came to.
type toll struct {
	Most   int64 // connections open at one time
	Closed int64 // by the other side
}

// hoard makes the attack in a process of its own, which takes what processor time others leave:
// in a cluster, attackers are on machines of their own.
func (a attack) hoard(ctx context.Context) (toll, error) {
	if err := checkFileLimit(uint64(a.Callers) + 1024); err != nil {
		return toll{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return toll{}, err
	}
	in, err := json.Marshal(a)
	if err != nil {
		return toll{}, err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "nice", "-n", "19", self, hoardCommand)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &said
	out, err := cmd.Output()
	if err != nil {
		return toll{}, fmt.Errorf("holding connections: %w: %s", err, said.Bytes())
	}
	var came toll
	err = json.Unmarshal(out, &came)
	return came, err
}

// hoardAsTold is that process: it makes the attack that in tells, and tells out what it came to.
func hoardAsTold(ctx context.Context, in io.Reader, out io.Writer) error {
	var a attack
	if err := json.NewDecoder(in).Decode(&a); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.Length)
	defer cancel()
	return json.NewEncoder(out).Encode(a.hold(ctx))
}

// hold holds connections until ctx ends.
func (a attack) hold(ctx context.Context) toll {
	var open, most, closed atomic.Int64
	var group sync.WaitGroup
	for i := range a.Callers {
		group.Go(func() {
			lab.Sleep(ctx, time.Duration(i)*a.Every) // not all at the same moment
			for ctx.Err() == nil {
				n := open.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				a.Holdings[i%len(a.Holdings)].hold(ctx)
				open.Add(-1)
				if ctx.Err() == nil {
					closed.Add(1)
				}
				lab.Sleep(ctx, a.Pause)
			}
		})
	}
	group.Wait()
	return toll{Most: most.Load(), Closed: closed.Load()}
}

// A holding is a connection that is held.
type holding struct {
	Address string
	From    string // the caller's own address; empty for any
	Secure  bool
	Begin   []byte // sent at once
	Trickle string // sent again and again, a byte a second
}

// hold holds it until the other side closes it, or ctx ends.
func (h holding) hold(ctx context.Context) {
	var dialer net.Dialer
	if h.From != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(h.From)}
	}
	conn, err := dialer.DialContext(ctx, "tcp", h.Address)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	stream := conn
	if h.Secure {
		secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // the caller is the attacker here
		if secure.HandshakeContext(ctx) != nil {
			return
		}
		stream = secure
	}
	if _, err := stream.Write(h.Begin); err != nil {
		return
	}
	go func() { // ends with the connection
		for i := 0; len(h.Trickle) > 0 && lab.Sleep(ctx, time.Second); i++ {
			if _, err := stream.Write([]byte{h.Trickle[i%len(h.Trickle)]}); err != nil {
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

// checkFileLimit reports an error if a program may not open that many files.
func checkFileLimit(n uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Max < n {
		return fmt.Errorf("the limit of open files is %d; raise it to %d (ulimit -Hn)", limit.Max, n)
	}
	return nil
}
