// SPDX-License-Identifier: Apache-2.0

package rawjson

import "github.com/go-json-experiment/json/jsontext"

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD, because JSON
// cannot express it.
func AppendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // its only error reports that replacement
	return dst
}
