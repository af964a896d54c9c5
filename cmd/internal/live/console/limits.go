// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxAnswer limits the bytes of a page, and the changes that it holds before they are rendered.
	maxAnswer = 1 << 20
	// maxObjects limits the objects of a form, and the pods that they make.
	maxObjects = 50
	// maxRepeated limits the text of a form that a page repeats.
	maxRepeated = 128 << 10
	// maxAsked limits the pods of a form about which the API server is asked, and maxAsking how long that takes.
	maxAsked  = 2 * maxObjects
	maxAsking = 10 * time.Second
)

// The limits of what is done at the same time, for each user before all users: a user who takes all of
// the own limit waits, and nobody else does.
const (
	// maxRenderings limits the pages that are rendered, because each may hold all pods of a cluster, and
	// maxWaiting the further requests of a user that wait.
	maxRenderings, maxUserRenderings, maxWaiting = 4, 1, 16
	// maxStreams limits the open pages that are read again.
	maxStreams, maxUserStreams = 64, 8
)

// errTooLarge refuses a page.
var errTooLarge = fmt.Errorf("the page has more than %d MiB", maxAnswer>>20)

// seats limits what is done at the same time.
type seats struct {
	all              chan struct{}
	perUser, waiting int

	mu    sync.Mutex
	users map[string]*userSeats // of users that have one or wait
}

type userSeats struct {
	taken chan struct{}
	count int // that are taken or waited for
}

func newSeats(all, perUser, waiting int) *seats {
	return &seats{all: make(chan struct{}, all), perUser: perUser, waiting: waiting, users: map[string]*userSeats{}}
}

func renderings() *seats { return newSeats(maxRenderings, maxUserRenderings, maxWaiting) }
func streams() *seats    { return newSeats(maxStreams, maxUserStreams, 0) }

// errUser and errAll say whose limit is reached.
var (
	errUser = errors.New("the limit of a user is reached")
	errAll  = errors.New("the limit of all users is reached")
)

// take takes a seat of a user, first among those of the user and then among those of all, and returns
// how to leave it. It waits until ctx ends, if seats may be waited for. Errors are errUser and errAll.
func (s *seats) take(ctx context.Context, user string) (leave func(), err error) {
	s.mu.Lock()
	mine := s.users[user]
	if mine == nil {
		mine = &userSeats{taken: make(chan struct{}, s.perUser)}
		s.users[user] = mine
	}
	if mine.count >= s.perUser+s.waiting {
		s.mu.Unlock()
		return nil, errUser
	}
	mine.count++
	s.mu.Unlock()
	forget := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if mine.count--; mine.count == 0 {
			delete(s.users, user)
		}
	}
	if !s.enter(ctx, mine.taken) {
		forget()
		return nil, errUser
	}
	if !s.enter(ctx, s.all) {
		<-mine.taken
		forget()
		return nil, errAll
	}
	return func() {
		<-s.all
		<-mine.taken
		forget()
	}, nil
}

// enter reports whether there is room in a channel, or is before ctx ends.
func (s *seats) enter(ctx context.Context, channel chan struct{}) bool {
	select {
	case channel <- struct{}{}:
		return true
	default:
	}
	if s.waiting == 0 {
		return false
	}
	select {
	case channel <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// An answer holds at most maxAnswer bytes of a page.
type answer struct {
	bytes    bytes.Buffer
	tooLarge bool
}

// Write fails with errTooLarge beyond the limit.
func (a *answer) Write(data []byte) (int, error) {
	if a.bytes.Len()+len(data) > maxAnswer {
		a.tooLarge = true
		return 0, errTooLarge
	}
	return a.bytes.Write(data)
}
