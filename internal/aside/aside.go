// SPDX-License-Identifier: Apache-2.0

// Package aside is how a review that waits makes room for one that has work to do. The
// server, which bounds how many are at work, and the handler, which knows when it waits,
// do not know each other: they meet here.
package aside

import "context"

// Key finds the [Place] of a review in its context.
type Key struct{}

// A Place is that of a review among those at work.
type Place interface {
	// Leave runs wait while the place is another's, and then waits for a place in turn, for
	// as long as ctx lasts. It tells whether there was one.
	Leave(ctx context.Context, wait func()) bool
}
