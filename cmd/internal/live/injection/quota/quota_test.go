// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

func TestAQuotaIsFreedByPodsThatEndFirst(t *testing.T) {
	const refused = `pods "p" is forbidden: exceeded quota: q, requested: `
	for name, tc := range map[string]struct {
		workload, refusal string
		want              bool
	}{
		"a StatefulSet, as much as is used":    {`{"kind": "StatefulSet"}`, refused + "limits.cpu=500m,pods=1, used: limits.cpu=2,pods=4, limited: limits.cpu=2,pods=4; spec.x comes from PodDefault a/b", true},
		"a DaemonSet":                          {`{"kind": "DaemonSet"}`, refused + "pods=1, used: pods=1, limited: pods=1", true},
		"a DaemonSet that begins others first": {`{"kind": "DaemonSet", "spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}}`, refused + "pods=1, used: pods=1, limited: pods=1", false},
		"a Deployment":                         {`{"kind": "Deployment"}`, refused + "pods=1, used: pods=1, limited: pods=1", false},
		"a Deployment that ends all first":     {`{"kind": "Deployment", "spec": {"strategy": {"type": "Recreate"}}}`, refused + "pods=1, used: pods=1, limited: pods=1", true},
		"less is used than requested":          {`{"kind": "StatefulSet"}`, refused + "memory=2Gi, used: memory=1Gi, limited: memory=2Gi", false},
		"more is used than is allowed":         {`{"kind": "StatefulSet"}`, refused + "pods=1, used: pods=3, limited: pods=2", false},
		"another refusal":                      {`{"kind": "StatefulSet"}`, `pods "p" is forbidden: no PriorityClass with name x was found`, false},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.FromJSON([]byte(`{"apiVersion": "apps/v1", "metadata": {"name": "w"}, ` + tc.workload[1:]))
			if err != nil {
				t.Fatal(err)
			}
			if got := Freed(objects[0], tc.refusal); got != tc.want {
				t.Errorf("freed: %t", got)
			}
		})
	}
}
