// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/explain"
)

const (
	// maxAnswer limits the bytes of a page, and the changes that it holds before they are rendered.
	maxAnswer = explain.MaxAnswer
	// maxObjects limits the objects of a form, and the pods that they make.
	maxObjects = 50
	// maxRepeated limits the text of a form that a page repeats.
	maxRepeated = 128 << 10
	// maxAsked limits the pods of a form about which the API server is asked, and maxAsking how long that takes.
	maxAsked  = 2 * maxObjects
	maxAsking = 10 * time.Second
	// maxReading limits what a page reads of the API server at the same time.
	maxReading = 4
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

func renderings() *access.Seats { return access.NewSeats(maxRenderings, maxUserRenderings, maxWaiting) }
func streams() *access.Seats    { return access.NewSeats(maxStreams, maxUserStreams, 0) }

// An answer holds at most maxAnswer bytes of a page.
type answer struct {
	bytes    bytes.Buffer
	tooLarge bool
}

// Write fails with explain.ErrTooLarge beyond the limit.
func (a *answer) Write(data []byte) (int, error) {
	if a.bytes.Len()+len(data) > maxAnswer {
		a.tooLarge = true
		return 0, explain.ErrTooLarge
	}
	return a.bytes.Write(data)
}
