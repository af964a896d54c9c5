// SPDX-License-Identifier: Apache-2.0

package rawjson

import "github.com/go-json-experiment/json/jsontext"

// AppendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD, as JSON
// has no other way.
func AppendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // its only error is about that replacement
	return dst
}
