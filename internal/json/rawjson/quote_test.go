// SPDX-License-Identifier: Apache-2.0

package rawjson

import "testing"

func TestAppendStringReplacesWhatIsNotUTF8(t *testing.T) {
	if got := string(AppendString([]byte("x"), "a\xffb")); got != "x\"a\ufffdb\"" {
		t.Errorf("got %q", got)
	}
}
