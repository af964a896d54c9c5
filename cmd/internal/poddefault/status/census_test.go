// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"testing"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

func TestOneNamespaceDoesNotStopARolloutOfMany(t *testing.T) {
	for _, tc := range []struct {
		what  string
		polls []poll // of each namespace
		most  *int32
		want  bool
	}{
		{what: "no pods"},
		{what: "the only namespace fails", polls: []poll{{1, 1}}, want: true},
		{what: "the only namespace fails within the limit", polls: []poll{{1, 10}}},
		{what: "one of two fails", polls: []poll{{9, 9}, {0, 1}}},
		{what: "one of many fails with most of the pods", polls: []poll{{1000, 1000}, {0, 1}, {0, 1}, {0, 1}}},
		{what: "two of three fail", polls: []poll{{1, 1}, {1, 1}, {0, 1}}, want: true},
		{what: "one fails, and one pod of another", polls: []poll{{1000, 1000}, {1, 1000}, {0, 8}}, want: true},
		{what: "two fail within the limit", polls: []poll{{5, 50}, {5, 50}, {0, 100}}},
		{what: "two fail, and none may", polls: []poll{{1, 500}, {1, 500}}, most: new(int32(0)), want: true},
		{what: "one fails, and none may", polls: []poll{{1, 500}, {0, 500}}, most: new(int32(0))},
		{what: "all fail, and all may", polls: []poll{{5, 5}, {5, 5}}, most: new(int32(100))},
	} {
		c := census{}
		for i, p := range tc.polls {
			for n := range p.all {
				c.add(fmt.Sprint(i), n < p.failed)
			}
		}
		if got := c.tooMany(&kubeflowv1alpha1.Rollout{MaxFailedPercent: tc.most}); got != tc.want {
			t.Errorf("%s: %v", tc.what, got)
		}
	}
}
