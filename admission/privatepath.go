// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/hex"
	"strings"
)

// PathSegmentBytes is the length of what makes a path private: its last segment, which is
// in hexadecimal and cannot be guessed.
const PathSegmentBytes = 16

// PublicPath is a path without the segment that makes it private, and whether it has one.
func PublicPath(path string) (public string, private bool) {
	slash := strings.LastIndexByte(path, '/')
	segment, err := hex.DecodeString(path[slash+1:])
	if err != nil || len(segment) != PathSegmentBytes || slash <= 0 {
		return path, false
	}
	return path[:slash], true
}
