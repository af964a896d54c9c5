// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"errors"
	"io"
	"net/http"
	"os"
)

// firstBuffer is the buffer of a body before its first byte arrives: enough for nearly all
// reviews, and small enough that callers cannot exhaust memory by announcing large bodies
// and sending nothing. Bodies of more than smallBuffer get all of it: the runtime takes a
// new span for each object of 7 to 8 KB, as the review of a pod is, and allocating 9 KB
// takes a third of the time.
const (
	smallBuffer = 6 << 10
	firstBuffer = 9 << 10
)

// bodyGrowth is the factor by which the buffer of a body grows. Copying a body of 128 KB
// between buffers that double in size costs more than reading it, and each buffer is garbage.
const bodyGrowth = 16

// readBody reads the body of r into memory. This happens before the request takes a seat
// for reviews, so that a slow caller occupies only its connection and the bytes it has
// sent. The caller of readBody must release the bytes of the arrival, even if the request
// was refused.
func (s *Server) readBody(r *http.Request, a *arrival) ([]byte, *refusal) {
	limit := s.options.MaxBodyBytes
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	// One byte above the limit distinguishes a body of unknown length that fits from one
	// that does not.
	longest := limit + 1
	if r.ContentLength >= 0 {
		longest = r.ContentLength
	}
	size := min(longest, firstBuffer)
	if refused := s.bodies.begin(a, size); refused != nil {
		return nil, refused
	}
	if size > smallBuffer {
		size = firstBuffer
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
