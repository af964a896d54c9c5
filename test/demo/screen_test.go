// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestColoursAreOnTheScreenOnlyIfWanted(t *testing.T) {
	for _, colours := range []bool{true, false} {
		var out bytes.Buffer
		s := &screen{out: &out, colours: colours}
		s.title("title")
		if got := strings.Contains(out.String(), "\x1b["); got != colours || !strings.Contains(out.String(), "title") {
			t.Errorf("colours wanted: %t, there: %t", colours, got)
		}
	}
}
