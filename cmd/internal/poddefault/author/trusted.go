// SPDX-License-Identifier: Apache-2.0

package author

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Labels and annotations that other components act on can give a pod more than its
// author may grant. Keys reserved for the kubelet or this webhook are errors. Keys that
// configure other components are warnings, because the author may have a good reason.
var (
	// kubeletKeys make the kubelet treat a pod as the mirror of a static pod. Such a
	// pod does not run, and webhooks do not see it.
	kubeletKeys = []string{
		"kubernetes.io/config.mirror", "kubernetes.io/config.source", "kubernetes.io/config.hash", "kubernetes.io/config.seen",
	}
	// ownDomains are the domains of the webhook's own marks, which record its decisions
	// about a pod.
	ownDomains = []string{"poddefault.admission.kubeflow.org", "sallyport.io"}
	// identityKeys are the keys by which controllers recognize their own pods.
	identityKeys = []string{
		"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name",
		"batch.kubernetes.io/job-completion-index", "pod-template-hash", "controller-revision-hash", "pod-template-generation",
		"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
	}
	// platformDomains and their subdomains belong to Kubernetes.
	platformDomains = []string{"kubernetes.io", "k8s.io"}
	// foreignDomains belong to networks, meshes and runtimes that act on a pod's
	// annotations.
	foreignDomains = []string{"cni.cncf.io", "projectcalico.org", "cilium.io", "istio.io", "linkerd.io", "openshift.io", "iam.amazonaws.com", "cri-o"}
)

// trustedKeys checks the keys of spec.labels or spec.annotations.
func trustedKeys(entries map[string]string, path *field.Path) (errs field.ErrorList, warnings []string) {
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		domain, _, _ := strings.Cut(strings.ToLower(key), "/")
		if domain == strings.ToLower(key) {
			domain = ""
		}
		at := path.Key(key)
		switch {
		case slices.Contains(kubeletKeys, strings.ToLower(key)):
			errs = append(errs, field.Forbidden(at, "only the kubelet says so, of pods that it runs from files: remove it"))
		case below(domain, ownDomains):
			errs = append(errs, field.Forbidden(at, "it is reserved for the webhook, which records its decision about a pod in it: remove it"))
		case slices.Contains(identityKeys, strings.ToLower(key)):
			errs = append(errs, field.Forbidden(at, "a controller knows its pods by it: remove it"))
		case below(domain, platformDomains):
			warnings = append(warnings, fmt.Sprintf("%s: components of Kubernetes decide by keys of %s: is that meant?", at, domain))
		case below(domain, foreignDomains) || strings.HasPrefix(strings.ToLower(key), "io.kubernetes.cri-o."):
			warnings = append(warnings, fmt.Sprintf("%s: keys of %s control the network, mesh or runtime: is this intended?", at, domain))
		}
	}
	return errs, warnings
}

// below reports whether a domain is one of the others or a subdomain of one.
func below(domain string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool { return domain == other || strings.HasSuffix(domain, "."+other) })
}
