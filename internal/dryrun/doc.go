// SPDX-License-Identifier: Apache-2.0

// Package dryrun asks an API server what it does with a request, by a dry run with the user's rights.
// Nothing is stored.
package dryrun
