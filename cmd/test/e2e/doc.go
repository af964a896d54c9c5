// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the sallyport command, as it is built, against a real API
// server: every field of a PodDefault, conflicts, failures, and what happens when
// one of the two goes away.
package e2e
