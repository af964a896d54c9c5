// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
)

const (
	// refresh is how often an open page is read again. A page that takes long is read less often: it
	// takes at most a twentieth of the time.
	refresh, maxBusy = 5 * time.Second, 20
	// maxStream is the time until a browser asks again, with the credentials that its user has then.
	maxStream = 10 * time.Minute
)

// stream sends the content of an open page when it has changed, as server-sent events: content, and
// read with the time of each reading. It ends with the console.
func (v visit) stream(w http.ResponseWriter, renderings, streams *access.Seats) {
	leave, err := streams.Take(v.Context(), v.user)
	switch {
	case errors.Is(err, access.ErrUser):
		http.Error(w, fmt.Sprintf("%d pages of yours follow the cluster already: close one, or reload this one by hand", maxUserStreams), http.StatusTooManyRequests)
		return
	case err != nil:
		http.Error(w, "too many pages are open: reload this one by hand", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	if control.SetReadDeadline(time.Time{}) != nil || control.Flush() != nil {
		return
	}
	end := time.After(maxStream)
	var shown []byte
	for wait := refresh; ; {
		select {
		case <-v.Context().Done():
			return
		case <-v.ending:
			return
		case <-end:
			return
		case <-time.After(wait):
		}
		started := time.Now()
		content, status, err := v.render(renderings, inMain)
		events := fmt.Sprintf("event: read\ndata: %s UTC\n\n", time.Now().UTC().Format(time.TimeOnly))
		if err == nil && status != http.StatusServiceUnavailable && !bytes.Equal(content, shown) { // an outage leaves what was read
			shown = content
			events += "event: content\ndata: " + strings.ReplaceAll(string(content), "\n", "\ndata: ") + "\n\n"
		}
		if control.SetWriteDeadline(time.Now().Add(maxTime)) != nil {
			return
		}
		if _, err := w.Write([]byte(events)); err != nil || control.Flush() != nil {
			return
		}
		wait = max(refresh, maxBusy*time.Since(started))
	}
}
