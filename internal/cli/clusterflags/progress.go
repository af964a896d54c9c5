// SPDX-License-Identifier: Apache-2.0

package clusterflags

import (
	"net/http"
	"strings"

	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/transport"
)

// reporting reports requests of a command as what it waits for.
func reporting(next http.RoundTripper) http.RoundTripper {
	return transport.Around(next, func(r *http.Request) (*http.Response, error) {
		terminal.Waiting(r.Context(), requested(r))
		return next.RoundTrip(r)
	})
}

// requested says what a request does: "reading pods of the namespace team-a".
func requested(r *http.Request) string {
	verb := "reading"
	switch {
	case r.Method == http.MethodGet:
	case r.URL.Query().Get("dryRun") != "":
		verb = "asking the API server by dry runs about"
	default:
		verb = "writing"
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch { // groups have a segment more than Kubernetes' own resources
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return "waiting for the API server"
	}
	where := ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		where, parts = " of the namespace "+parts[1], parts[2:]
	}
	return verb + " " + parts[0] + where
}
