// SPDX-License-Identifier: Apache-2.0

package lint

import "testing"

func TestAPrivatePathIsServedWhereItsPublicPartIs(t *testing.T) {
	paths := []string{"/check"}
	for path, want := range map[string]bool{
		"/check": true, "/check/0123456789abcdef0123456789abcdef": true, "/chek/0123456789abcdef0123456789abcdef": false, "/check/x": false,
	} {
		if served(paths, path) != want {
			t.Errorf("%s is served: %t", path, !want)
		}
	}
}
