// SPDX-License-Identifier: Apache-2.0

// Package docs checks that what the documents and examples say is so.
package docs
