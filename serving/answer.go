// SPDX-License-Identifier: Apache-2.0

package serving

import "net/http"

// answer is a response on its way out. It keeps the status, and does what has to
// happen in the moment the handler has made up its mind.
type answer struct {
	http.ResponseWriter
	server *Server
	// status is 0 until the header is written.
	status int
	// slot says that the request occupies one of the slots for reviews.
	slot bool
}

// WriteHeader writes the header. The slot is given back here, since the work is
// done: a caller who is slow to read the answer holds up nobody else. The
// connection is closed if the server is draining by now, even if it was not when
// the request came.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK && a.status == 0 {
		a.status = status
		a.giveSlot()
		if a.server.draining.Load() {
			a.Header().Set("Connection", "close")
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(p)
}

// giveSlot gives the slot back if the request has one.
func (a *answer) giveSlot() {
	if a.slot {
		a.slot = false
		a.server.slots.give()
	}
}
