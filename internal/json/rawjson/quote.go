// SPDX-License-Identifier: Apache-2.0

package rawjson

import "github.com/go-json-experiment/json/jsontext"

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD, because JSON
// cannot express it.
func AppendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	start := len(dst)
	dst = append(append(append(dst, '"'), s...), '"')
	if end, holds := textEnd(dst, start); end == len(dst) && holds == 0 {
		return dst // as nearly all strings of a patch: nothing to escape
	}
	dst, _ = jsontext.AppendQuote(dst[:start], s) // its only error reports that replacement
	return dst
}
