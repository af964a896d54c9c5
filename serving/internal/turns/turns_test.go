// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestAddressesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(1)
		never := make(chan struct{})
		if !turns.Take("crowd", never) {
			t.Fatal("no turn while there is one")
		}
		var mu sync.Mutex
		var served []string
		wait := func(address string) {
			go func() {
				if turns.Take(address, never) {
					mu.Lock()
					served = append(served, address)
					mu.Unlock()
				}
			}()
			synctest.Wait()
		}
		for range 100 {
			wait("crowd")
		}
		wait("a")
		wait("b")
		wait("a")
		for range 103 {
			turns.Give()
			synctest.Wait()
		}
		if first := served[:6]; !slices.Equal(first, []string{"crowd", "a", "b", "crowd", "a", "crowd"}) {
			t.Errorf("served %v first", first)
		}
		turns.Give()
		if turns.free != 1 || len(turns.order) != 0 || len(turns.waiting) != 0 || len(served) != 103 {
			t.Errorf("left: %+v, %d served", turns, len(served))
		}
	})
}

func TestWhoLeavesTheQueueKeepsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(2)
		never := make(chan struct{})
		for range 2 {
			turns.Take("a", never)
		}
		gone := make(chan struct{})
		results := make(chan bool, 200)
		for i := range 200 {
			go func() { results <- turns.Take(fmt.Sprint(i%3), gone) }()
		}
		synctest.Wait()
		close(gone)
		for range 200 {
			if <-results {
				turns.Give() // it was closed while it had its turn
			}
		}
		for range 2 {
			turns.Give()
		}
		if turns.free != 2 || len(turns.order) != 0 || len(turns.waiting) != 0 {
			t.Errorf("left: %+v", turns)
		}
	})
}
