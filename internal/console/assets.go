// SPDX-License-Identifier: Apache-2.0

package console

import (
	_ "embed"
	"net/http"
)

//go:embed style.css
var style []byte

func serveStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(style) // the client may be gone
}
