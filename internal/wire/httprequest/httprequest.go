// SPDX-License-Identifier: Apache-2.0

// Package httprequest tells adapters for other frameworks of which HTTP request a call is part.
package httprequest

import (
	"context"
	"net/http"
)

// Key is the key of the request in the context of a call.
type Key struct{}

// From returns the request, or nil outside of one. Its body may have been read.
func From(ctx context.Context) *http.Request {
	request, _ := ctx.Value(Key{}).(*http.Request)
	return request
}
