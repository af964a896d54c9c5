// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"net"
	"testing"
)

// Two blocks of one process are as those of two processes.
func TestNoPortIsGivenTwice(t *testing.T) {
	given := map[int]bool{}
	for range 2 {
		b := reserved(t)
		for range blockSize - 1 {
			port, err := b.get()
			if err != nil {
				t.Fatal(err)
			}
			if given[port] {
				t.Fatalf("%d was given before", port)
			}
			if port < first || port >= first+blocks*blockSize {
				t.Fatalf("%d is none of the ports for tests", port)
			}
			given[port] = true
		}
	}
}

func TestAPortThatSomebodyListensOnIsNotGiven(t *testing.T) {
	b := reserved(t)
	taken, err := b.get()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: taken})
	if err != nil {
		t.Fatalf("the port given cannot be listened on: %v", err)
	}
	defer func() { _ = listener.Close() }()
	for range blockSize { // all others, and the first of them again
		if port, err := b.get(); err != nil || port == taken {
			t.Fatalf("got %d, %v, while %d is taken", port, err, taken)
		}
	}
}

func TestPortsOfAProcess(t *testing.T) {
	if first, second := For(t), For(t); first == second {
		t.Errorf("%d was given twice", first)
	}
}

func reserved(t *testing.T) *block {
	t.Helper()
	b, err := reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.listener.Close() })
	return b
}
