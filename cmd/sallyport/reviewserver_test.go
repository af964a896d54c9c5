// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestReviewAsksAClusterOnlyIfItIsToldTo(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a kubeconfig without the flag": {[]string{"--kubeconfig", "x"}, "requires --server"},
		"a context without the flag":    {[]string{"--context", "x"}, "requires --server"},
		"another operation":             {[]string{"--server", "--operation", "DELETE"}, "--server requires --operation CREATE"},
		"no cluster":                    {[]string{"--server", "--kubeconfig", "/none/such"}, "set --kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sallyportWith(t, matchingYAML, append([]string{"review", "-f", "-"}, tc.args...)...); got.status != exitError || !strings.Contains(got.stderr, tc.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}
