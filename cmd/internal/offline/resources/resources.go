// SPDX-License-Identifier: Apache-2.0

// Package resources finds API resources by the names that people type and by their kinds:
// those of a cluster, or, without one, those of Kubernetes, of this project and of the
// CustomResourceDefinitions in files.
package resources

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/policyrules"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/resourcenames"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// A Resource is what is known of one version of a resource.
type Resource struct {
	schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	// Equivalents are the same resource in other versions and groups: the API server
	// converts between them for webhooks with matchPolicy Equivalent.
	Equivalents []schema.GroupVersionResource
}

// A Set is all resources that are known, the preferred version of each first.
type Set struct {
	all     []Resource
	names   map[string][]string // group resources by kind, singular and short name
	byGroup lint.Resources
}

func (s *Set) add(found Resource, names ...string) {
	s.all = append(s.all, found)
	s.byGroup.Versions = append(s.byGroup.Versions, policyrules.Resource{GroupVersionResource: found.GroupVersionResource, Kind: found.Kind.Kind, Namespaced: found.Namespaced})
	for _, name := range append(names, strings.ToLower(found.Kind.Kind)) {
		if name != "" {
			s.names[name] = append(s.names[name], found.GroupResource().String())
		}
	}
}

// Find takes what kubectl takes: "pods", "po", "deployments.apps", "deployments.v1.apps".
func (s *Set) Find(argument string) (*Resource, error) {
	argument = strings.ToLower(argument)
	withVersion, named := schema.ParseResourceArg(argument)
	matches := func(r Resource) bool {
		if withVersion != nil && r.GroupVersionResource == *withVersion {
			return true
		}
		known := slices.Contains(s.names[named.Resource], r.GroupResource().String())
		if named.Group != "" {
			return r.GroupResource() == named || named.Group == r.Group && known
		}
		return r.Resource == named.Resource || known
	}
	i := slices.IndexFunc(s.all, func(r Resource) bool { return r.Group == "" && matches(r) }) // the core group first, as kubectl
	if i < 0 {
		i = slices.IndexFunc(s.all, matches)
	}
	if i < 0 {
		return nil, fmt.Errorf("there is no resource %q: write it as kubectl does, such as pods or deployments.apps", argument)
	}
	return s.withEquivalents(s.all[i]), nil
}

// FindFor is [Set.Find] for the resource of an object. If there is no definition of its kind, the resource is
// guessed from the kind, as one in a namespace if the object has one.
func (s *Set) FindFor(argument string, gvk schema.GroupVersionKind, namespaced bool) (*Resource, error) {
	found, err := s.Find(argument)
	if err == nil || gvk.Kind == "" || s.OfKind(gvk) != nil {
		return found, err
	}
	resource, singular := meta.UnsafeGuessKindToResource(gvk)
	s.add(Resource{GroupVersionResource: resource, Kind: gvk, Namespaced: namespaced}, singular.Resource)
	if found, again := s.Find(argument); again == nil {
		return found, nil
	}
	return nil, err
}

// OfKind returns the resource of a kind, or nil if it is unknown.
func (s *Set) OfKind(gvk schema.GroupVersionKind) *Resource {
	i := slices.IndexFunc(s.all, func(r Resource) bool { return r.Kind == gvk })
	if i < 0 {
		return nil
	}
	return s.withEquivalents(s.all[i])
}

func (s *Set) withEquivalents(found Resource) *Resource {
	for _, other := range s.all {
		if other.GroupVersionResource != found.GroupVersionResource && (other.GroupResource() == found.GroupResource() || areEvents(other) && areEvents(found)) {
			found.Equivalents = append(found.Equivalents, other.GroupVersionResource)
		}
	}
	return &found
}

// Equivalents returns what the API server converts between: the versions of each resource, and those of a
// subresource of one of them. Its objects have a kind, if it has one of its own.
func (s *Set) Equivalents(of schema.GroupResource, subresource string, kind schema.GroupVersionKind) runtime.EquivalentResourceRegistry {
	out := runtime.NewEquivalentResourceRegistry()
	for _, r := range s.all {
		out.RegisterKindFor(r.GroupVersionResource, "", r.Kind)
		switch {
		case subresource == "" || r.GroupResource() != of:
		case r.Kind.GroupKind() == kind.GroupKind():
			out.RegisterKindFor(r.GroupVersionResource, subresource, r.Kind)
		default:
			out.RegisterKindFor(r.GroupVersionResource, subresource, kind)
		}
	}
	return out
}

// areEvents tells whether a resource is Events, which two groups serve from one storage.
func areEvents(r Resource) bool {
	return r.Resource == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// ForLint returns the resources as rules look at them. Those of a cluster are complete,
// with subresources; those of files are the ones of Kubernetes.
func (s *Set) ForLint() *lint.Resources { return &s.byGroup }

func newSet() *Set {
	return &Set{names: map[string][]string{}, byGroup: lint.Resources{ByGroup: map[string][]string{}}}
}

// OfCluster asks the API server. Groups whose own server does not answer are left out; for
// lint they are groups of which nothing is known.
func OfCluster(client discovery.DiscoveryInterface) (*Set, error) {
	_, lists, err := client.ServerGroupsAndResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return nil, fmt.Errorf("asking the API server for its resources: %w", err)
	}
	out := newSet()
	out.byGroup.Complete = true
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			out.byGroup.ByGroup[version.Group] = append(out.byGroup.ByGroup[version.Group], r.Name)
			if !strings.Contains(r.Name, "/") {
				out.add(Resource{GroupVersionResource: version.WithResource(r.Name), Kind: version.WithKind(r.Kind), Namespaced: r.Namespaced},
					append(r.ShortNames, r.SingularName)...)
			}
		}
	}
	if partial != nil {
		for version := range partial.Groups {
			out.byGroup.ByGroup[version.Group] = nil
		}
	}
	return out, nil
}

// OfFiles returns the resources of Kubernetes, of this project, and of the
// CustomResourceDefinitions among the objects. An error is about one of those.
func OfFiles(objects []*manifest.Object) (*Set, error) {
	out := newSet()
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
			out.add(Resource{GroupVersionResource: resource, Kind: version.WithKind(kind), Namespaced: !resourcenames.ClusterScoped(resource.Group, resource.Resource)}, singular.Resource)
		}
	}
	out.add(Resource{GroupVersionResource: kubeflowv1alpha1.GroupVersion.WithResource(kubeflowv1alpha1.PodDefaultResource), Kind: kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind), Namespaced: true})
	out.add(Resource{GroupVersionResource: sallyportv1alpha1.GroupVersion.WithResource(sallyportv1alpha1.ClusterPodDefaultResource), Kind: sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind)})
	out.add(Resource{GroupVersionResource: sallyportv1alpha1.GroupVersion.WithResource(sallyportv1alpha1.PodDefaultRevisionResource), Kind: sallyportv1alpha1.Kind(sallyportv1alpha1.PodDefaultRevisionKind), Namespaced: true})
	out.add(Resource{GroupVersionResource: sallyportv1alpha1.GroupVersion.WithResource(sallyportv1alpha1.ClusterPodDefaultRevisionResource), Kind: sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultRevisionKind)})
	out.add(Resource{GroupVersionResource: sallyportv1alpha1.GroupVersion.WithResource(sallyportv1alpha1.ExemptionResource), Kind: sallyportv1alpha1.Kind(sallyportv1alpha1.ExemptionKind), Namespaced: true})
	// OpenShift serves these without a definition.
	for _, kind := range []string{"Project", "ProjectRequest"} {
		gvk := schema.GroupVersionKind{Group: "project.openshift.io", Version: "v1", Kind: kind}
		out.add(Resource{GroupVersionResource: gvk.GroupVersion().WithResource(strings.ToLower(kind) + "s"), Kind: gvk}, strings.ToLower(kind))
	}
	for short, resource := range map[string]string{
		"po": "pods", "svc": "services", "cm": "configmaps", "ns": "namespaces", "no": "nodes", "sa": "serviceaccounts", "deploy": "deployments.apps",
		"sts": "statefulsets.apps", "ds": "daemonsets.apps", "pvc": "persistentvolumeclaims", "pv": "persistentvolumes", "ing": "ingresses.networking.k8s.io",
	} {
		out.names[short] = []string{resource}
	}
	for _, r := range out.all {
		if r.Group == kubeflowv1alpha1.GroupVersion.Group { // Kubeflow has other kinds in the group
			out.byGroup.ByGroup[r.Group] = nil
			continue
		}
		out.byGroup.ByGroup[r.Group] = append(out.byGroup.ByGroup[r.Group], r.Resource)
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
				out.add(Resource{
					GroupVersionResource: version.WithResource(crd.Spec.Names.Plural), Kind: version.WithKind(crd.Spec.Names.Kind),
					Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
				}, append(crd.Spec.Names.ShortNames, crd.Spec.Names.Singular)...)
			}
		}
	}
	return out, nil
}
