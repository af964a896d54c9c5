// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
)

// firstBuffer is what a body gets before its first byte has come: enough for
// nearly all reviews, and little enough that callers who announce a large body
// and then send nothing cannot fill the memory.
const firstBuffer = 8 << 10

// body is a request body that has been read.
type body struct {
	bytes.Reader
	data []byte
}

func newBody(data []byte) *body {
	b := &body{data: data}
	b.Reset(data)
	return b
}

// Bytes returns the whole body, however much of it has been read.
func (b *body) Bytes() []byte { return b.data }

// Close does nothing: there is nothing to close.
func (b *body) Close() error { return nil }

// readBody reads the body of r into memory. It is read before the request takes
// one of the slots for reviews, so that a slow caller occupies nothing but its
// connection and the bytes it has sent.
//
// held is what the body takes of the bytes in flight; the caller gives it back,
// also if the request was refused.
func (s *Server) readBody(r *http.Request) (data []byte, held int64, refused *refusal) {
	limit := s.options.MaxBodyBytes
	if r.ContentLength > limit {
		return nil, 0, tooLarge(limit)
	}
	// One byte above the limit tells a body of unknown length that fits from one
	// that does not.
	longest := limit + 1
	if r.ContentLength >= 0 {
		longest = r.ContentLength
	}

	for size := min(longest, firstBuffer); ; size = min(longest, 2*size) {
		if !s.bytes.take(size - held) {
			return nil, held, busyBytes
		}
		held = size
		grown := make([]byte, len(data), size)
		copy(grown, data)
		data = grown

		for len(data) < cap(data) {
			n, err := r.Body.Read(data[len(data):cap(data)])
			data = data[:len(data)+n]
			switch {
			case err == io.EOF:
				if int64(len(data)) > limit {
					return nil, held, tooLarge(limit)
				}
				return data, held, nil
			case errors.Is(err, os.ErrDeadlineExceeded):
				return nil, held, slowBody
			case err != nil:
				return nil, held, brokenBody
			}
		}
		if size == longest {
			if r.ContentLength < 0 {
				return nil, held, tooLarge(limit)
			}
			return data, held, nil
		}
	}
}
