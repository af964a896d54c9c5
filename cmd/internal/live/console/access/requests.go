// SPDX-License-Identifier: Apache-2.0

package access

import (
	"mime"
	"net/http"
	"path"
	"strings"
)

// contentSecurityPolicy allows the console's own style sheet, script and forms, and nothing else.
const contentSecurityPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"

// Secure adds headers to all responses, and refuses requests of other sites and paths that are not
// clean. Bodies have at most maxBytes.
func Secure(next http.Handler, maxBytes int64) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if r.URL.Path != path.Clean(r.URL.Path) { // the mux would redirect
			http.NotFound(w, r)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBytes)
		next.ServeHTTP(w, r)
	})
}

// ForPrograms reports whether the client asks for JSON rather than a page. Browsers ask for text/html.
func ForPrograms(r *http.Request) bool {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		switch kind, _, _ := mime.ParseMediaType(accepted); kind {
		case "text/html":
			return false
		case "application/json":
			return true
		}
	}
	return false
}

// ForPeople reports whether the answer is shown while it arrives. Others get a status that suits the content.
func ForPeople(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}
