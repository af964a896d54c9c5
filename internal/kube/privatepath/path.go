// SPDX-License-Identifier: Apache-2.0

// Package privatepath tells the paths of webhooks that cannot be guessed from those that can.
package privatepath

import (
	"encoding/hex"
	"strings"
)

// SegmentBytes is the length of the random bytes that make a path private. They are its last
// segment, in hexadecimal.
const SegmentBytes = 16

// Public returns a path without the segment that makes it private, and whether it has one.
func Public(path string) (public string, private bool) {
	slash := strings.LastIndexByte(path, '/')
	segment, err := hex.DecodeString(path[slash+1:])
	if err != nil || len(segment) != SegmentBytes || slash <= 0 {
		return path, false
	}
	return path[:slash], true
}
