// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// RecentPath is the path of the recent reviews on the port for metrics. Readers need the verb get
// on it as a nonResourceURL.
const RecentPath = "/recorded-reviews"

const (
	// AfterParameter is the query parameter with the cursor of an earlier answer, which is then not
	// repeated.
	AfterParameter = "after"
	// CursorHeader is the header of an answer with the cursor of the next one.
	CursorHeader = "Sallyport-Cursor"
	// MissedHeader is the header of an answer with the number of reviews that are no longer in
	// memory and were in no earlier answer.
	MissedHeader = "Sallyport-Missed"
)

// maxReaders limits concurrent answers. A slow reader keeps its lines in memory.
const maxReaders = 2

// ring keeps the latest lines of a recording in memory. A nil ring keeps none.
type ring struct {
	maxLines, maxBytes int
	epoch              string // unique to this process: cursors of another one have no meaning
	readers            chan struct{}

	mu    sync.Mutex
	lines [][]byte // oldest first
	bytes int      // in lines
	ended int      // lines that have left
}

func newRing(maxLines, maxMegabytes int) *ring {
	return &ring{maxLines: maxLines, maxBytes: maxMegabytes << 20, epoch: rand.Text(), readers: make(chan struct{}, maxReaders)}
}

// add adds a line, which must not change afterwards.
func (r *ring) add(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	r.bytes += len(line)
	for len(r.lines) > r.maxLines || r.bytes > r.maxBytes {
		r.bytes -= len(r.lines[0])
		r.lines[0] = nil // the array lives on
		r.lines = r.lines[1:]
		r.ended++
	}
}

// after returns the lines after a cursor, the cursor of the next ones, and how many lines between
// them have left.
func (r *ring) after(cursor string) (lines [][]byte, next string, missed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.ended
	if epoch, number, ok := strings.Cut(cursor, "."); ok && epoch == r.epoch {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 {
			missed = max(0, r.ended-n)
			seen = max(n, r.ended)
		}
	}
	total := r.ended + len(r.lines)
	lines = append(lines, r.lines[min(seen-r.ended, len(r.lines)):]...)
	return lines, r.epoch + "." + strconv.Itoa(total), missed
}

// ServeHTTP answers with the recent reviews, oldest first, one line of JSON for each.
func (r *ring) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is served here", http.StatusMethodNotAllowed)
		return
	}
	select {
	case r.readers <- struct{}{}:
		defer func() { <-r.readers }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many read the recent reviews at the same time: try again", http.StatusTooManyRequests)
		return
	}
	lines, next, missed := r.after(req.URL.Query().Get(AfterParameter))
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(CursorHeader, next)
	w.Header().Set(MissedHeader, strconv.Itoa(missed))
	for _, line := range lines {
		if _, err := w.Write(line); err != nil {
			return // the reader is gone
		}
	}
}
