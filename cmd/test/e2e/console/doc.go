// SPDX-License-Identifier: Apache-2.0

// Package console tries the pages of `sallyport console` in a browser, on a real API server with
// real webhooks.
//
// The browser is a chromium on the PATH, or what SALLYPORT_BROWSER names. `make test` leaves the
// package out where there is none and none can be installed, and says so.
package console
