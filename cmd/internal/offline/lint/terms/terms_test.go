// SPDX-License-Identifier: Apache-2.0

package terms

import "testing"

func TestOppositeConditionsAreRecognised(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		want       bool
	}{
		{"a negation", "!(object.a == 'x' || object.b)", "object.a == 'x' || object.b", true},
		{"an equality", "object.a == 'x'", "object.a != 'x'", true},
		{"terms one by one", "!has(o.m.a) || !('k' in o.m.a) || o.m.a['k'] != 'true'", "has(o.m.a) && 'k' in o.m.a && o.m.a['k'] == 'true'", true},
		{"in another order", "!a || b != 1", "b == 1 &&   (a)", true},
		{"a term is missing", "!a || b != 1", "b == 1", false},
		{"another value", "object.a == 'x'", "object.a != 'y'", false},
		{"operators in strings", "a == '|| b'", "a != '|| b'", true},
		{"the same", "a || b", "a || b", false},
		{"nothing", "", "a", false},
		{"brackets that do not close", "((a || b", "c && d)", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Opposite(tc.a, tc.b) || Opposite(tc.b, tc.a); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
