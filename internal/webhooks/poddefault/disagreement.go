// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"
	"strings"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Objects that disagree are told of in the same words wherever that is: in the denial of
// a pod, in a status, and to whoever writes one of them.

// bothSet is "PodDefaults a and b both set env X".
func bothSet(a, b *Compiled, places string) string {
	if a.title == b.title {
		return a.title + " sets twice " + places
	}
	return both(a, b) + " both set " + places
}

// both names two objects in the order in which they are applied.
func both(a, b *Compiled) string {
	if inOrder(a, b) > 0 {
		a, b = b, a
	}
	switch {
	case a.Cluster() != b.Cluster():
		return a.title + " and " + b.title
	case a.Cluster():
		return "ClusterPodDefaults " + a.name + " and " + b.name
	}
	return "PodDefaults " + a.name + " and " + b.name
}

// Disagreement says in a sentence or two that two objects want different things at these
// places, which [Overlap] found, what becomes of pods that both select, and what can be
// done. At most so many places are named.
func Disagreement(a, b *Compiled, places []string, most int) string {
	if inOrder(a, b) > 0 {
		a, b = b, a
	}
	named := strings.Join(places[:min(most, len(places))], ", ")
	if more := len(places) - most; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	text, remedy := bothSet(a, b, named), "Change one selector, or set spec.conflictPolicy of "+b.name
	switch {
	case b.policy != "" && b.policy != kubeflowv1alpha1.ConflictDeny:
		return text + fmt.Sprintf("; of pods selected by both the conflictPolicy %s of %s decides", b.policy, b.name)
	case b.policy == "" && !slices.ContainsFunc(places, denies):
		return text + "; pods selected by both get one of them, with a warning. " + remedy
	case a.audit || b.audit:
		return text + "; pods selected by both would be denied if none was in mode Audit. " + remedy
	}
	return text + "; pods selected by both are denied. " + remedy
}

// denies tells whether objects without a policy deny a pod because of the place. Of fields
// that were there before policies, the first or the last object wins.
func denies(place string) bool {
	return !slices.Contains([]string{"command", "args", "serviceAccountName", automountField}, place)
}
