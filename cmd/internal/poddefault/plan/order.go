// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// InOrder compares by order of application. Later objects may override earlier ones, so
// ClusterPodDefaults come before the PodDefaults of the namespace, and lower priorities
// before higher ones. Otherwise names decide, as in Kubeflow's webhook.
func InOrder(a, b *Plan) int {
	if a.Cluster() != b.Cluster() {
		if a.Cluster() {
			return -1
		}
		return 1
	}
	if a.priority != b.priority {
		return cmp.Compare(a.priority, b.priority)
	}
	return strings.Compare(a.name, b.name)
}

// IsIn compares titles, because an object may have been read again or filled in.
func IsIn(list []*Plan, c *Plan) bool {
	return slices.ContainsFunc(list, func(other *Plan) bool { return other == c || other.title == c.title })
}

// Names lists the objects as [meta.DecisionsAnnotation] names them, for messages.
func Names(objects []*Plan) string {
	if len(objects) == 1 {
		return objects[0].decision
	}
	out := make([]string, len(objects))
	for i, c := range objects {
		out[i] = c.decision
	}
	return meta.Few(out, ",", 0)
}

// Generations returns, for example, "a@1,cluster/b@7".
func Generations(objects []*Plan) string {
	size := 0
	for _, c := range objects {
		size += len(c.decision) + len("@12345,")
	}
	out := make([]byte, 0, size)
	for i, c := range objects {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(append(append(out, c.decision...), '@'), c.generation, 10)
	}
	return string(out)
}
