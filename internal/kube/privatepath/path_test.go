// SPDX-License-Identifier: Apache-2.0

package privatepath

import "testing"

func TestTheSegmentThatMakesAPathPrivateIsCutOff(t *testing.T) {
	const segment = "0123456789abcdef0123456789abcdef"
	for path, want := range map[string]string{
		"/a/" + segment: "/a", "/a/b/" + segment: "/a/b",
		"/a": "/a", "": "", "/": "/", "/" + segment: "/" + segment, segment: segment, "/a/" + segment[2:]: "/a/" + segment[2:], "/a/x" + segment[1:]: "/a/x" + segment[1:],
	} {
		if public, private := Public(path); public != want || private != (want != path) {
			t.Errorf("%q: %q, %t", path, public, private)
		}
	}
}
