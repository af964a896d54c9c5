// SPDX-License-Identifier: Apache-2.0

package hosting

import "testing"

func TestTheLabelOfOwnPodsHasAKeyAndAValue(t *testing.T) {
	for label, problems := range map[string]int{
		"": 0, "app.kubernetes.io/name=sallyport": 0,
		"app": 1, "app=": 1, "=sallyport": 2, "a b=c d": 2,
	} {
		if got := OwnPodsProblems(label); len(got) != problems {
			t.Errorf("%q: %q", label, got)
		}
	}
}
