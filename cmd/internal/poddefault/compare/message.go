// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strings"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Denials, statuses and warnings to authors describe conflicting objects in the same
// words.

// BothSet is "PodDefaults a and b both set env X".
func BothSet(a, b *plan.Plan, places string) string {
	if a.String() == b.String() {
		return a.String() + " sets twice " + places
	}
	return Both(a, b) + " both set " + places
}

// Both names two objects in order of application.
func Both(a, b *plan.Plan) string {
	if plan.InOrder(a, b) > 0 {
		a, b = b, a
	}
	switch {
	case a.Cluster() != b.Cluster():
		return a.String() + " and " + b.String()
	case a.Cluster():
		return "ClusterPodDefaults " + a.Name() + " and " + b.Name()
	}
	return "PodDefaults " + a.Name() + " and " + b.Name()
}

// Disagreement describes in a sentence or two that two objects conflict at these
// places, found by [OfPlans], what happens to pods that both select, and the remedy. It
// names at most limit places.
func Disagreement(a, b *plan.Plan, places []string, limit int) string {
	if plan.InOrder(a, b) > 0 {
		a, b = b, a
	}
	named := strings.Join(places[:min(limit, len(places))], ", ")
	if more := len(places) - limit; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	text, remedy := BothSet(a, b, named), "Change one selector, or set spec.conflictPolicy of "+b.Name()
	switch {
	case b.Policy != "" && b.Policy != kubeflowv1alpha1.ConflictDeny:
		return text + fmt.Sprintf("; of pods selected by both the conflictPolicy %s of %s decides", b.Policy, b.Name())
	case b.Policy == "" && !slices.ContainsFunc(places, denies):
		return text + "; pods selected by both get one of them, with a warning. " + remedy
	case a.Audit || b.Audit:
		return text + "; pods selected by both would be denied if none was in mode Audit. " + remedy
	}
	return text + "; pods selected by both are denied. " + remedy
}

// denies reports whether a conflict at the place denies a pod if the objects have no
// policy. For fields older than policies, the first or the last object wins.
func denies(place string) bool {
	return !slices.Contains([]string{"command", "args", "serviceAccountName", plan.AutomountField}, place)
}
