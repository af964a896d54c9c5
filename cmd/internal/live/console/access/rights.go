// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// onBehalf limits what the console may do as somebody else, with constrained impersonation (KEP-5284, on by
// default since Kubernetes 1.36): the API server checks it in addition to the user's own rights.
const onBehalf = "impersonate-on:user-info:"

// ImpersonateAnyUser is the right to impersonate any user that is neither a service account nor a node, as far as
// [PolicyRules] go. Restrict it with resourceNames if the users are known.
func ImpersonateAnyUser() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"users"}, Verbs: []string{"impersonate:user-info"}}
}

// PolicyRules returns what a console behind a proxy may do as its users: to read what the pages need, and no
// Secrets. It has no rights of its own.
func PolicyRules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	read := map[string][]string{} // resources by group
	add := func(group, resource string) {
		if !slices.Contains(read[group], resource) {
			read[group] = append(read[group], resource)
		}
	}
	for _, resource := range []string{"nodes", "persistentvolumeclaims", "persistentvolumes"} {
		add("", resource)
	}
	add("coordination.k8s.io", "leases")
	add(kubeflowv1alpha1.GroupName, kubeflowv1alpha1.PodDefaultResource)
	for _, resource := range []string{
		sallyportv1alpha1.ClusterPodDefaultResource, sallyportv1alpha1.PodDefaultRevisionResource, sallyportv1alpha1.ClusterPodDefaultRevisionResource,
		sallyportv1alpha1.ExemptionResource,
	} {
		add(sallyportv1alpha1.GroupName, resource)
	}
	for _, gvk := range lint.Kinds() {
		if gvk.Kind != "Secret" {
			resource, _ := meta.UnsafeGuessKindToResource(gvk) // correct for these kinds
			add(resource.Group, resource.Resource)
		}
	}
	for _, k := range workload.Kinds() {
		group, _, grouped := strings.Cut(k.GroupVersion, "/")
		if !grouped {
			group = ""
		}
		add(group, k.Resource)
	}
	for _, resource := range []string{"clustertrainingruntimes", "trainingruntimes"} { // of TrainJobs
		add("trainer.kubeflow.org", resource)
	}
	add(kubeflowv1alpha1.GroupName, "workspacekinds") // of Workspaces
	for _, resource := range kinds.Resources() {
		add(kinds.Group, resource)
	}
	for _, group := range slices.SortedFunc(maps.Keys(read), cmp.Compare[string]) {
		slices.Sort(read[group])
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: read[group], Verbs: []string{onBehalf + "get", onBehalf + "list"}})
	}
	return append(rules, rbacv1.PolicyRule{
		NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*", "/metrics", "/version"}, Verbs: []string{onBehalf + "get"},
	})
}
