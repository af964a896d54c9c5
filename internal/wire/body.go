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

// firstBuffer limits the memory allocated for a body of announced length before any of
// it arrives.
const firstBuffer = 64 << 10

// readBody reads the whole body of a review. The server sets the size limit on r.Body,
// see [http.MaxBytesReader].
func readBody(r *http.Request) ([]byte, *Fault) {
	if r.Method != http.MethodPost {
		return nil, &Fault{Code: http.StatusMethodNotAllowed, Err: errors.New("reviews are sent with POST")}
	}
	if fault := checkMedia(r.Header); fault != nil {
		return nil, fault
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
	}
	return body, checkEmpty(body)
}

// checkRead checks a body that the caller has already read.
func checkRead(header http.Header, body []byte) *Fault {
	if fault := checkMedia(header); fault != nil {
		return fault
	}
	return checkEmpty(body)
}

func checkEmpty(body []byte) *Fault {
	if len(body) == 0 {
		return &Fault{Code: http.StatusBadRequest, Err: errors.New("the body is empty; send an AdmissionReview")}
	}
	return nil
}

func checkMedia(header http.Header) *Fault {
	if contentType := header.Get("Content-Type"); contentType != "application/json" {
		media, _, err := mime.ParseMediaType(contentType)
		if err != nil || media != "application/json" {
			return &Fault{
				Code: http.StatusUnsupportedMediaType,
				Err:  fmt.Errorf("content type %s: send application/json", brief(contentType)),
			}
		}
	}
	if encoding := header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return &Fault{
			Code: http.StatusUnsupportedMediaType,
			Err:  fmt.Errorf("content encoding %s: send the review as it is", brief(encoding)),
		}
	}
	return nil
}

func readAll(r *http.Request) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), firstBuffer)) + bytes.MinRead)
	_, err := io.Copy(&body, r.Body)
	return body.Bytes(), err
}
