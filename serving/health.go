// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const (
	livezPath  = "/livez"
	readyzPath = "/readyz"
	// metricsPath is served on the metrics port.
	metricsPath = "/metrics"

	// gateInterval is how often the Gate checks run while the gate is closed and
	// [Server.Recheck] is not called.
	gateInterval = time.Second
)

// health serves the probes and controls the gate.
type health struct {
	checks   []Check
	live     []Check
	draining *atomic.Bool
	// gateOpen is set once all Gate checks have passed, and stays set; opened is closed at
	// the same time.
	gateOpen atomic.Bool
	opened   chan struct{}
	recheck  chan struct{}
}

func newHealth(checks, live []Check, draining *atomic.Bool) *health {
	h := &health{checks: checks, live: live, draining: draining, opened: make(chan struct{}), recheck: make(chan struct{}, 1)}
	gated := false
	for _, check := range checks {
		gated = gated || check.Gate
	}
	if !gated {
		h.open()
	}
	return h
}

func (h *health) open() {
	if !h.gateOpen.Swap(true) {
		close(h.opened)
	}
}

// Recheck notifies the server that a Gate check may pass now. It does not block. Without
// it, the gate opens at the next request for /readyz, or within a second.
func (s *Server) Recheck() {
	select {
	case s.health.recheck <- struct{}{}:
	default: // one is already pending
	}
}

// Opened returns a channel that is closed once all Gate checks have passed.
func (s *Server) Opened() <-chan struct{} { return s.health.opened }

// livez responds 200 with "ok". It depends only on [Options].LiveChecks: a restart would
// not bring back the API server, and would lose the caches.
func (h *health) livez(w http.ResponseWriter, _ *http.Request) {
	var failed strings.Builder
	for _, check := range h.live {
		if err := check.Ready(); err != nil {
			fmt.Fprintf(&failed, "[-] %s: %v\n", check.Name, err)
		}
	}
	if failed.Len() > 0 {
		writeText(w, http.StatusInternalServerError, failed.String()+"not live\n")
		return
	}
	writeText(w, http.StatusOK, "ok\n")
}

// readyz reports whether the server should get new calls: 200 with "ok", or 503 with a line
// for each check and the reasons. ?verbose always shows the lines.
func (h *health) readyz(w http.ResponseWriter, r *http.Request) {
	ready, report := h.report()
	switch {
	case !ready:
		writeText(w, http.StatusServiceUnavailable, report+"not ready\n")
	case r.URL.Query().Has("verbose"):
		writeText(w, http.StatusOK, report+"ok\n")
	default:
		writeText(w, http.StatusOK, "ok\n")
	}
}

func (h *health) report() (ready bool, report string) {
	var lines strings.Builder
	ready, gate := true, true
	if h.draining.Load() {
		ready = false
		lines.WriteString("[-] shutdown: draining\n")
	}
	for _, check := range h.checks {
		if err := check.Ready(); err != nil {
			ready, gate = false, gate && !check.Gate
			fmt.Fprintf(&lines, "[-] %s: %v\n", check.Name, err)
			continue
		}
		detail := ""
		if check.Detail != nil {
			if text := check.Detail(); text != "" {
				detail = ": " + text
			}
		}
		fmt.Fprintf(&lines, "[+] %s%s\n", check.Name, detail)
	}
	if gate {
		h.open()
	}
	return ready, lines.String()
}

// waitForGate runs the checks until the gate is open. Requests only read gateOpen, so that
// a slow check does not delay them.
func (h *health) waitForGate(ctx context.Context) {
	ticker := time.NewTicker(gateInterval)
	defer ticker.Stop()
	for !h.gateOpen.Load() {
		h.report()
		select {
		case <-ctx.Done():
			return
		case <-h.recheck:
		case <-ticker.C:
		}
	}
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the caller is gone
}
