// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"time"
)

type asideKey struct{}

// WithAside is for servers that bound how many reviews are at work: aside, which [Await]
// calls, runs wait while the review is not one of them, and then tells whether it may go on.
func WithAside(ctx context.Context, aside func(ctx context.Context, wait func()) bool) context.Context {
	return context.WithValue(ctx, asideKey{}, aside)
}

// Await runs wait, in which a handler waits for somebody else, such as the API server,
// and which returns what is returned. The server that called the handler has a limit on
// reviews at work; meanwhile this one does not count, so that those that wait do not keep
// out those that need no more than a processor. Afterwards it counts again: if there is
// no room before ctx ends, the error is one of [Unavailable]. Where there is no such limit
// wait is run and nothing else.
func Await(ctx context.Context, wait func() error) error {
	aside, ok := ctx.Value(asideKey{}).(func(context.Context, func()) bool)
	if !ok {
		return wait()
	}
	var err error
	if !aside(ctx, func() { err = wait() }) && err == nil {
		err = Unavailable(errors.New("too many reviews at work"), time.Second)
	}
	return err
}
