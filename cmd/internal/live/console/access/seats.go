// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"sync"
)

// Seats limit what is done at the same time.
type Seats struct {
	all              chan struct{}
	perUser, waiting int

	mu    sync.Mutex
	users map[string]*userSeats // of users that have one or wait
}

type userSeats struct {
	taken chan struct{}
	count int // that are taken or waited for
}

// NewSeats returns seats of all users together and of each of them, and how many requests of a user may wait for one.
func NewSeats(all, perUser, waiting int) *Seats {
	return &Seats{all: make(chan struct{}, all), perUser: perUser, waiting: waiting, users: map[string]*userSeats{}}
}

// ErrUser and ErrAll say whose limit is reached.
var (
	ErrUser = errors.New("the limit of a user is reached")
	ErrAll  = errors.New("the limit of all users is reached")
)

// Take takes a seat of a user, first among those of the user and then among those of all, and returns
// how to leave it. It waits until ctx ends, if seats may be waited for. Errors are ErrUser and ErrAll.
func (s *Seats) Take(ctx context.Context, user string) (leave func(), err error) {
	s.mu.Lock()
	mine := s.users[user]
	if mine == nil {
		mine = &userSeats{taken: make(chan struct{}, s.perUser)}
		s.users[user] = mine
	}
	if mine.count >= s.perUser+s.waiting {
		s.mu.Unlock()
		return nil, ErrUser
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
		return nil, ErrUser
	}
	if !s.enter(ctx, s.all) {
		<-mine.taken
		forget()
		return nil, ErrAll
	}
	return func() {
		<-s.all
		<-mine.taken
		forget()
	}, nil
}

// enter reports whether there is room in a channel, or is before ctx ends.
func (s *Seats) enter(ctx context.Context, channel chan struct{}) bool {
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
