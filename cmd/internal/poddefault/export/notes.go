// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"slices"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// notes says what the policies do not do, or do differently from the webhook, and what they cost.
// A pod passes through as many mutations as rounds, at most.
func notes(objects []*kubeflowv1alpha1.PodDefault, rounds int) []string {
	out := []string{
		"They need Kubernetes 1.36 or later. Remove the PodDefault webhook, or keep these namespaces from it: both would do the same work.",
		"They hold the current PodDefaults. Export them again, all of a namespace at once, whenever one is written or deleted;",
		"  delete the policies and bindings of a namespace that no longer has a PodDefault.",
		"There are no warnings, no audit annotations of applied objects, no events, no metrics and no status.",
		"Exemptions do not exempt pods: the policies do not read them.",
		"A mount path that differs from another only by a slash, and tolerationSeconds that are replaced, are not told of.",
		"Who may read policies reads the values of environment variables and annotations that PodDefaults set. When an expression",
		"  fails, as for a pod so large that it costs too much, the API server's message to who creates the pod holds it with its values.",
		"Conflicts are found when the pod is finished: also those with values that other webhooks and policies have added after these.",
		"A message about a conflict begins with the name of the policy, and its status is 403 Forbidden, not 400 BadRequest.",
		"Fields that exclude others, as hostUsers: false excludes hostNetwork, are left to the API server, whose message names no PodDefault.",
		"Labels that webhooks add to a pod select nothing if no PodDefault selected it before: the API server does not ask again a policy",
		"  that had nothing to do. Those that other policies add count if they happen to be asked first, which is in no fixed order.",
		fmt.Sprintf("The API server encodes and decodes a pod that any PodDefault of its namespace selects once for each mutation (here %d at most):", rounds),
		"  about 0.4 ms each, and 0.1 ms for each PodDefault that is applied. From dozens that apply to one pod on, a server is faster.",
	}
	if slices.ContainsFunc(objects, func(pd *kubeflowv1alpha1.PodDefault) bool { return pd.ResourceVersion == "" }) {
		return append(out, "Some of the PodDefaults have no resourceVersion: the annotations that mark pods are empty then. kubectl get -o yaml gives it.")
	}
	return append(out, "The annotations that mark pods have the resourceVersion of the PodDefault that was exported.")
}
