// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"
	"strings"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Denials, statuses and warnings to authors describe conflicting objects in the same
// words.

// bothSet is "PodDefaults a and b both set env X".
func bothSet(a, b *Compiled, places string) string {
	if a.title == b.title {
		return a.title + " sets twice " + places
	}
	return both(a, b) + " both set " + places
}

// both names two objects in order of application.
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

// Disagreement describes in a sentence or two that two objects conflict at these
// places, found by [Overlap], what happens to pods that both select, and the remedy. It
// names at most most places.
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

// denies reports whether a conflict at the place denies a pod if the objects have no
// policy. For fields older than policies, the first or the last object wins.
func denies(place string) bool {
	return !slices.Contains([]string{"command", "args", "serviceAccountName", automountField}, place)
}
