// SPDX-License-Identifier: Apache-2.0

// Package sallyporttest helps to test webhooks against a real API server.
package sallyporttest
