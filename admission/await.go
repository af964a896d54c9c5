// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"time"
)

type yieldKey struct{}

// WithYield is for servers that limit concurrent reviews. [Await] calls yield, which runs
// wait without counting the review, and then reports whether the review may continue.
func WithYield(ctx context.Context, yield func(ctx context.Context, wait func()) bool) context.Context {
	return context.WithValue(ctx, yieldKey{}, yield)
}

// Await runs wait, in which a handler waits for another system such as the API server, and
// returns its result. While it runs, the review does not count towards the server's limit
// of concurrent reviews, so that waiting reviews do not block reviews that only need a CPU.
// Afterwards it counts again: if there is no room before ctx ends, the error is
// [Unavailable]. Without such a limit, Await just runs wait.
func Await(ctx context.Context, wait func() error) error {
	yield, ok := ctx.Value(yieldKey{}).(func(context.Context, func()) bool)
	if !ok {
		return wait()
	}
	var err error
	if !yield(ctx, func() { err = wait() }) && err == nil {
		err = Unavailable(errors.New("too many concurrent reviews"), time.Second)
	}
	return err
}
