// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"time"

	"github.com/sallyport-io/sallyport/internal/aside"
)

// Await runs wait, in which a handler waits for somebody else, such as the API server,
// and which returns what is returned. The server that called the handler has a limit on
// reviews at work; meanwhile this one does not count, so that those that wait do not keep
// out those that need no more than a processor. Afterwards it counts again: if there is
// no room before ctx ends, the error is one of [Unavailable]. Where there is no such limit
// wait is run and nothing else.
func Await(ctx context.Context, wait func() error) error {
	place, ok := ctx.Value(aside.Key{}).(aside.Place)
	if !ok {
		return wait()
	}
	var err error
	if !place.Leave(ctx, func() { err = wait() }) && err == nil {
		err = Unavailable(errors.New("too many reviews at work"), time.Second)
	}
	return err
}
