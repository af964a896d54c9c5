// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// firstBuffer is at most what a body of announced length gets before it has come.
const firstBuffer = 64 << 10

// readBody reads the whole body of a review. The limit on its size is set on
// r.Body by the server, see [http.MaxBytesReader].
func readBody(r *http.Request) ([]byte, *Fault) {
	if r.Method != http.MethodPost {
		return nil, &Fault{Code: http.StatusMethodNotAllowed, Err: errors.New("reviews are sent with POST")}
	}
	if contentType := r.Header.Get("Content-Type"); contentType != "application/json" {
		media, _, err := mime.ParseMediaType(contentType)
		if err != nil || media != "application/json" {
			return nil, &Fault{
				Code: http.StatusUnsupportedMediaType,
				Err:  fmt.Errorf("content type %s: send application/json", brief(contentType)),
			}
		}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, &Fault{
			Code: http.StatusUnsupportedMediaType,
			Err:  fmt.Errorf("content encoding %s: send the review as it is", brief(encoding)),
		}
	}
	body, err := readAll(r)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &Fault{
			Code: http.StatusRequestEntityTooLarge,
			Err:  fmt.Errorf("the review is larger than %d bytes", tooLarge.Limit),
		}
	case err != nil:
		return nil, &Fault{Code: http.StatusBadRequest, Err: fmt.Errorf("reading the review: %w", err)}
	case len(body) == 0:
		return nil, &Fault{Code: http.StatusBadRequest, Err: errors.New("the body is empty; send an AdmissionReview")}
	}
	return body, nil
}

func readAll(r *http.Request) ([]byte, error) {
	if inMemory, ok := r.Body.(interface{ Bytes() []byte }); ok { // package serving has read it
		return inMemory.Bytes(), nil
	}
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), firstBuffer)) + bytes.MinRead)
	_, err := io.Copy(&body, r.Body)
	return body.Bytes(), err
}
