// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names under which the API server serves the kinds. Resources are plural, as in RBAC rules and URLs.
const (
	GroupName                         = "sallyport.io"
	Version                           = "v1alpha1"
	ClusterPodDefaultKind             = "ClusterPodDefault"
	ClusterPodDefaultResource         = "clusterpoddefaults"
	PodDefaultRevisionKind            = "PodDefaultRevision"
	PodDefaultRevisionResource        = "poddefaultrevisions"
	ClusterPodDefaultRevisionKind     = "ClusterPodDefaultRevision"
	ClusterPodDefaultRevisionResource = "clusterpoddefaultrevisions"
	ExemptionKind                     = "Exemption"
	ExemptionResource                 = "exemptions"
)

// GroupVersion is sallyport.io/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: Version}

// Kind qualifies a kind of this package with its group and version.
func Kind(kind string) schema.GroupVersionKind { return GroupVersion.WithKind(kind) }

// Resource qualifies a plural resource name with this group and version.
func Resource(resource string) schema.GroupVersionResource {
	return GroupVersion.WithResource(resource)
}

// AddToScheme adds the types of this package to a scheme. It never returns an error; scheme
// builders require the signature.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ClusterPodDefault{}, &ClusterPodDefaultList{}, &PodDefaultRevision{}, &PodDefaultRevisionList{},
		&ClusterPodDefaultRevision{}, &ClusterPodDefaultRevisionList{}, &Exemption{}, &ExemptionList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
