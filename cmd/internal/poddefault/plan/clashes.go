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
	for _, lists := range [][]FieldList{a.PodLists, a.ContainerLists} {
		for i := range lists {
			if slices.Contains([]*ListKind{PortKind, DeviceKind, ClaimKind, NameserverKind, SearchKind, GateKind, CapabilityAddKind}, lists[i].Kind) {
				return true
			}
		}
	}
	ofPod := []string{"hostUsers", "shareProcessNamespace", "dnsPolicy"}
	return slices.ContainsFunc(a.PodValues, func(f FieldValue) bool { return slices.Contains(ofPod, f.Tokens[0]) }) ||
		slices.ContainsFunc(a.ContainerValues, func(f FieldValue) bool { return f.Tokens[0] == "securityContext" }) ||
		slices.ContainsFunc(a.Resources, func(q Quantity) bool { return Whole(q.Name) }) ||
		slices.ContainsFunc(a.Containers, func(w Item) bool { return bytes.Contains(w.Value, []byte(`"ports"`)) }) || a.mayClashWithPod()
}

// Whole reports whether a resource's request must equal its limit.
func Whole(name string) bool {
	return meta.Extended(corev1.ResourceName(name)) || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
}

// mayClashWithPod reports whether the object has anything that the rules about a pod's operating
// system, privileges and figures concern.
func (a *Additions) mayClashWithPod() bool {
	ofPod := []string{"securityContext", "terminationGracePeriodSeconds"}
	ofContainer := []string{"securityContext", "lifecycle"}
	of := func(tokens []string) func(FieldValue) bool {
		return func(f FieldValue) bool { return slices.Contains(tokens, f.Tokens[0]) }
	}
	lists := []*ListKind{SysctlKind, GroupKind, CapabilityAddKind, CapabilityDropKind}
	of2 := func(l FieldList) bool { return slices.Contains(lists, l.Kind) }
	propagates := func(w Item) bool { return bytes.Contains(w.Value, []byte(`"mountPropagation"`)) }
	return len(a.Containers)+len(a.InitContainers) > 0 ||
		slices.ContainsFunc(a.PodValues, of(ofPod)) || slices.ContainsFunc(a.ContainerValues, of(ofContainer)) ||
		slices.ContainsFunc(a.PodLists, of2) || slices.ContainsFunc(a.ContainerLists, of2) || slices.ContainsFunc(a.VolumeMounts, propagates)
}
