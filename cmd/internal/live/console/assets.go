// SPDX-License-Identifier: Apache-2.0

package console

import (
	_ "embed"
	"net/http"
)

var (
	//go:embed style.css
	style []byte
	//go:embed live.js
	live []byte
)

func serveFile(mediaType string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType+"; charset=utf-8")
		_, _ = w.Write(content) // the client may be gone
	}
}
