// SPDX-License-Identifier: Apache-2.0

// Package early writes the frame of a page before its content, if that takes long.
package early

import (
	"bytes"
	"net/http"
	"sync"
	"time"
)

// MaxBlank is how long a browser shows nothing.
const MaxBlank = 100 * time.Millisecond

// Reading is in the place of the content until that comes. Without scripts, the style sheet hides it then.
const Reading = `<p class="reading" role="status">Reading the cluster…</p>`

// An Answer is an answer to a request.
type Answer struct {
	MediaType string
	// Render returns the answer, or why there is none.
	Render func() (body []byte, status int, err error)
	// Frame returns the page without content, or with an error instead; nil if it has none. It is written after the time
	// Blank, and the status is 200 then, also if the content is a problem. Nil for those who want all at once.
	Frame func(instead error) []byte
	Blank time.Duration

	mutex    sync.Mutex
	answered bool
	early    bool // the frame is written
}

// Write writes the answer.
func (a *Answer) Write(w http.ResponseWriter) {
	if a.Frame != nil {
		defer time.AfterFunc(a.Blank, func() { a.writeFrame(w) }).Stop()
	}
	body, status, err := a.Render()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.answered = true
	switch {
	case a.early && err != nil:
		body = a.Frame(err)
		fallthrough
	case a.early:
		_, content := cut(body)
		_, _ = w.Write(content) // the client may be gone
	case err != nil:
		askAgain(w, status)
		http.Error(w, err.Error(), status)
	default:
		a.head(w, status)
		_, _ = w.Write(body) // the client may be gone
	}
}

// writeFrame writes what is before the content, unless there is an answer.
func (a *Answer) writeFrame(w http.ResponseWriter) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.answered {
		return
	}
	before, _ := cut(a.Frame(nil))
	if before == nil {
		return
	}
	a.early = true
	a.head(w, http.StatusOK)
	_, _ = w.Write(append(before, Reading...)) // the client may be gone
	_ = http.NewResponseController(w).Flush()  // otherwise it comes with the content
}

func (a *Answer) head(w http.ResponseWriter, status int) {
	askAgain(w, status)
	w.Header().Set("Content-Type", a.MediaType+"; charset=utf-8")
	w.Header().Set("Vary", "Accept")
	w.WriteHeader(status)
}

// askAgain says when to ask again, if that can help.
func askAgain(w http.ResponseWriter, status int) {
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "5")
	}
}

// cut divides a page where its content begins. What is before that is not of the cluster.
func cut(page []byte) (frame, content []byte) {
	begin := bytes.Index(page, []byte("<main "))
	if begin < 0 {
		return nil, page
	}
	begin += bytes.IndexByte(page[begin:], '>') + 1
	return page[:begin:begin], page[begin:]
}
