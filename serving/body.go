// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"errors"
	"io"
	"net/http"
	"os"
)

// firstBuffer is what a body gets before its first byte has come: enough for
// nearly all reviews, and little enough that callers who announce a large body
// and then send nothing cannot fill the memory.
const firstBuffer = 8 << 10

// bodyGrowth is how many times what has arrived the next buffer has. It costs more to copy a
// body of 128 KB from buffer to buffer, each twice the last, than to read it.
const bodyGrowth = 4

// readBody reads the body of r into memory. It is read before the request takes
// one of the places for reviews, so that a slow caller occupies nothing but its
// connection and the bytes it has sent. The caller gives back what the arrival
// takes of the bytes in memory, also if the request was refused.
func (s *Server) readBody(r *http.Request, a *arrival) ([]byte, *refusal) {
	limit := s.options.MaxBodyBytes
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	// One byte above the limit tells a body of unknown length that fits from one
	// that does not.
	longest := limit + 1
	if r.ContentLength >= 0 {
		longest = r.ContentLength
	}
	size := min(longest, firstBuffer)
	if refused := s.bodies.begin(a, size); refused != nil {
		return nil, refused
	}
	data, err := make([]byte, 0, size), error(nil)
	for int64(len(data)) < longest && err == nil {
		if len(data) == cap(data) {
			size := min(longest, bodyGrowth*int64(len(data)))
			if refused := s.bodies.grow(a, size-int64(len(data))); refused != nil {
				return nil, refused
			}
			grown := make([]byte, len(data), size)
			copy(grown, data)
			data = grown
		}
		var n int
		n, err = r.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		a.received.Store(int64(len(data)))
	}
	if refused := s.bodies.arrived(a); refused != nil {
		return nil, refused
	}
	switch {
	case int64(len(data)) > limit:
		return nil, tooLarge(limit)
	case err == nil || errors.Is(err, io.EOF):
		return data, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, slowBody
	default:
		return nil, brokenBody
	}
}
