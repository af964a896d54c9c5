// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/replay/review"
	"github.com/sallyport-io/sallyport/lint"
)

// foundResource is a resource that was named in the way of kubectl.
type foundResource struct {
	resource   schema.GroupVersionResource
	kind       schema.GroupVersionKind
	namespaced bool
	// equivalents are the same resource in other versions, and groups: the API server
	// converts between them for webhooks with matchPolicy Equivalent.
	equivalents []schema.GroupVersionResource
}

// resources are all that are known, the preferred version of each first.
type resources struct {
	all   []foundResource
	short map[string][]string // names of people for resources: kinds, singulars, short names
}

func (r *resources) add(found foundResource, names ...string) {
	r.all = append(r.all, found)
	for _, name := range append(names, strings.ToLower(found.kind.Kind)) {
		if name != "" {
			r.short[name] = append(r.short[name], found.resource.GroupResource().String())
		}
	}
}

// find takes "pods", "po", "deployments.apps" and "deployments.v1.apps".
func (r *resources) find(argument string) (foundResource, error) {
	argument = strings.ToLower(argument)
	withVersion, named := schema.ParseResourceArg(argument)
	matches := func(f foundResource) bool {
		if withVersion != nil && f.resource == *withVersion {
			return true
		}
		if named.Group != "" {
			return f.resource.GroupResource() == named || named.Group == f.resource.Group && slices.Contains(r.short[named.Resource], f.resource.GroupResource().String())
		}
		return f.resource.Resource == named.Resource || slices.Contains(r.short[named.Resource], f.resource.GroupResource().String())
	}
	i := slices.IndexFunc(r.all, func(f foundResource) bool { return f.resource.Group == "" && matches(f) }) // as kubectl has it
	if i < 0 {
		i = slices.IndexFunc(r.all, matches)
	}
	if i < 0 {
		return foundResource{}, fmt.Errorf("there is no resource %q: write it as kubectl does, such as pods or deployments.apps", argument)
	}
	return r.withEquivalents(r.all[i]), nil
}

func (r *resources) withEquivalents(found foundResource) foundResource {
	for _, other := range r.all {
		if other.resource != found.resource && (other.resource.GroupResource() == found.resource.GroupResource() || twins(other.resource, found.resource)) {
			found.equivalents = append(found.equivalents, other.resource)
		}
	}
	return found
}

// resourcesForReview are those of files, by their kinds.
func resourcesForReview(objects []*manifest.Object) (func(schema.GroupVersionKind) *review.Resource, error) {
	known, err := resourcesOfFiles(objects)
	if err != nil {
		return nil, err
	}
	return func(gvk schema.GroupVersionKind) *review.Resource {
		i := slices.IndexFunc(known.all, func(f foundResource) bool { return f.kind == gvk })
		if i < 0 {
			return nil
		}
		found := known.withEquivalents(known.all[i])
		return &review.Resource{GroupVersionResource: found.resource, Namespaced: found.namespaced, Equivalents: found.equivalents}
	}, nil
}

// twins tells whether two resources of different groups are stored as one.
func twins(a, b schema.GroupVersionResource) bool {
	ofEvents := func(r schema.GroupVersionResource) bool {
		return r.Resource == "events" && (r.Group == "" || r.Group == "events.k8s.io")
	}
	return ofEvents(a) && ofEvents(b)
}

// discover asks the API server which resources there are, and which groups' own servers do
// not answer.
func discover(config *rest.Config) (lists []*metav1.APIResourceList, silent []schema.GroupVersion, err error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	_, lists, err = client.ServerGroupsAndResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partial) {
		return lists, slices.Collect(maps.Keys(partial.Groups)), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("asking the API server which resources there are: %w", err)
	}
	return lists, nil, nil
}

// resourcesOfCluster asks the API server. Groups whose own server does not answer are
// left out.
func resourcesOfCluster(config *rest.Config) (*resources, error) {
	lists, _, err := discover(config)
	if err != nil {
		return nil, err
	}
	out := &resources{short: map[string][]string{}}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				out.add(foundResource{resource: version.WithResource(resource.Name), kind: version.WithKind(resource.Kind), namespaced: resource.Namespaced},
					append(resource.ShortNames, resource.SingularName)...)
			}
		}
	}
	return out, nil
}

// resourcesOfFiles are those of Kubernetes, the project's own, and those of the definitions
// among the objects.
func resourcesOfFiles(objects []*manifest.Object) (*resources, error) {
	out := &resources{short: map[string][]string{}}
	for _, version := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		var kinds []string
		for kind := range scheme.Scheme.KnownTypes(version) {
			kinds = append(kinds, kind)
		}
		slices.Sort(kinds)
		for _, kind := range kinds {
			if strings.HasSuffix(kind, "List") || strings.HasSuffix(kind, "Options") || kind == "WatchEvent" {
				continue
			}
			resource, singular := meta.UnsafeGuessKindToResource(version.WithKind(kind))
			out.add(foundResource{resource: resource, kind: version.WithKind(kind), namespaced: !lint.ClusterScoped(resource.Group, resource.Resource)}, singular.Resource)
		}
	}
	for _, own := range []foundResource{
		{resource: kubeflowv1alpha1.GroupVersion.WithResource(kubeflowv1alpha1.PodDefaultResource), kind: kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind), namespaced: true},
		{resource: sallyportv1alpha1.GroupVersion.WithResource(sallyportv1alpha1.ClusterPodDefaultResource), kind: sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind)},
	} {
		out.add(own)
	}
	for short, resource := range map[string]string{
		"po": "pods", "svc": "services", "cm": "configmaps", "ns": "namespaces", "no": "nodes", "sa": "serviceaccounts", "deploy": "deployments.apps",
		"sts": "statefulsets.apps", "ds": "daemonsets.apps", "pvc": "persistentvolumeclaims", "pv": "persistentvolumes", "ing": "ingresses.networking.k8s.io",
	} {
		out.short[short] = []string{resource}
	}
	for _, o := range objects {
		if o.Kind != "CustomResourceDefinition" || o.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := o.Decode(&crd); err != nil {
			return nil, err
		}
		for _, v := range crd.Spec.Versions {
			if v.Served {
				version := schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}
				out.add(foundResource{resource: version.WithResource(crd.Spec.Names.Plural), kind: version.WithKind(crd.Spec.Names.Kind), namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped},
					append(crd.Spec.Names.ShortNames, crd.Spec.Names.Singular)...)
			}
		}
	}
	return out, nil
}

// forLint are the resources of Kubernetes itself, for rules over files.
func (r *resources) forLint() *lint.Resources {
	out := &lint.Resources{ByGroup: map[string][]string{}}
	for _, found := range r.all {
		out.ByGroup[found.resource.Group] = append(out.ByGroup[found.resource.Group], found.resource.Resource)
	}
	return out
}

// lintResourcesOfCluster are all that the API server has, with sub-resources. Of a group
// whose own server does not answer it knows nothing.
func lintResourcesOfCluster(config *rest.Config) (*lint.Resources, error) {
	lists, silent, err := discover(config)
	if err != nil {
		return nil, err
	}
	out := &lint.Resources{ByGroup: map[string][]string{}, Complete: true}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			out.ByGroup[version.Group] = append(out.ByGroup[version.Group], resource.Name)
		}
	}
	for _, version := range silent {
		out.ByGroup[version.Group] = nil
	}
	return out, nil
}
