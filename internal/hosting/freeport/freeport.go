// SPDX-License-Identifier: Apache-2.0

// Package freeport gives tests, and what they start, TCP ports of 127.0.0.1 to listen on.
//
// A port that was only found free may be gone before somebody listens on it: the kernel gives it
// to a connection, or another test process finds it free, too. So ports are below those that
// kernels give to connections, and each process has a block of them for itself.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// The ports are 12000 to 31999: Linux gives connections those from 32768, other systems from 49152.
const (
	first     = 12000
	blocks    = 100
	blockSize = 200
)

// A block of ports belongs to the process that listens on the first of them.
type block struct {
	mu       sync.Mutex
	listener net.Listener
	next     int
}

// own is the block of this process, which keeps it until it ends.
var own = sync.OnceValues(reserve)

// Get returns a TCP port of 127.0.0.1 that nobody listens on. No other process that calls Get
// gets it while this one runs, nor does this one before it has got all others of its block.
func Get() (int, error) {
	b, err := own()
	if err != nil {
		return 0, err
	}
	return b.get()
}

// For is [Get] for a test, which fails if there is none.
func For(t testing.TB) int {
	t.Helper()
	port, err := Get()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func reserve() (*block, error) {
	for _, i := range rand.Perm(blocks) {
		listener, err := listen(first + i*blockSize)
		if err != nil {
			return nil, err
		}
		if listener != nil {
			return &block{listener: listener}, nil
		}
	}
	return nil, fmt.Errorf("looking for a port: %d other processes have reserved them", blocks)
}

func (b *block) get() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range blockSize - 1 {
		port := b.listener.Addr().(*net.TCPAddr).Port + 1 + b.next
		b.next = (b.next + 1) % (blockSize - 1)
		listener, err := listen(port)
		if err != nil {
			return 0, err
		}
		if listener != nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("looking for a port: all that this process has reserved are in use")
}

// listen returns nil if somebody listens already.
func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for a port: %w", err)
	}
	return listener, nil
}
