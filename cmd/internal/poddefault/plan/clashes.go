// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// The API server validates a pod after the webhooks have changed it, and its error
// names a field but not who set it. An object that can never pass is left out.
// Combinations with this pod that cannot pass are denied here, naming the objects.
// These are the rules of k8s.io/kubernetes, pkg/apis/core/validation, that a pod and
// additions can break together. Problems of the pod alone are left to the API server.

// mayClash reports whether the object has anything that these rules concern.
func (a *Additions) mayClash() bool {
	kinds := []*ListKind{
		PortKind, DeviceKind, ClaimKind, NameserverKind, SearchKind, GateKind, CapabilityAddKind, CapabilityDropKind, SysctlKind, GroupKind,
	}
	ofPod := []string{"hostUsers", "shareProcessNamespace", "dnsPolicy", "securityContext", "terminationGracePeriodSeconds"}
	ofContainer := []string{"securityContext", "lifecycle"}
	listed := func(l FieldList) bool { return slices.Contains(kinds, l.Kind) }
	among := func(fields []string) func(FieldValue) bool {
		return func(f FieldValue) bool { return slices.Contains(fields, f.Tokens[0]) }
	}
	return len(a.Containers)+len(a.InitContainers) > 0 ||
		slices.ContainsFunc(a.PodLists, listed) || slices.ContainsFunc(a.ContainerLists, listed) ||
		slices.ContainsFunc(a.PodValues, among(ofPod)) || slices.ContainsFunc(a.ContainerValues, among(ofContainer)) ||
		slices.ContainsFunc(a.Resources, func(q Quantity) bool { return Whole(q.Name) }) ||
		slices.ContainsFunc(a.VolumeMounts, func(w Item) bool { return bytes.Contains(w.Value, []byte(`"mountPropagation"`)) })
}

// Whole reports whether a resource's request must equal its limit.
func Whole(name string) bool {
	return meta.Extended(corev1.ResourceName(name)) || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
}
