// SPDX-License-Identifier: Apache-2.0

package matcher

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Request is a request to the API server.
type Request struct {
	Operation admissionregistrationv1.OperationType
	// Resource and Subresource belong to the request, Kind to Object.
	Resource    schema.GroupVersionResource
	Subresource string
	Kind        schema.GroupVersionKind
	// Namespace is empty for cluster-scoped objects. For a Namespace it is its name.
	Namespace, Name string
	// Object and OldObject depend on the operation; nil if absent or unknown.
	Object, OldObject map[string]any
	// User and Groups identify the user.
	User   string
	Groups []string
	// NamespaceLabels are the labels of the namespace; nil if unknown.
	NamespaceLabels map[string]string
	// Equivalents are the same resource in other versions or groups.
	Equivalents []schema.GroupVersionResource
	// KubernetesMinor is the minor version N of Kubernetes 1.N; 0 means unknown and
	// counts as the newest.
	KubernetesMinor int
}

// Bare returns a request to write an object of which only name and namespace are known.
func Bare(group, version, resource, kind, namespace string) Request {
	object := map[string]any{"apiVersion": schema.GroupVersion{Group: group, Version: version}.String(), "kind": kind, "metadata": map[string]any{"name": "x"}}
	if namespace != "" {
		object["metadata"] = map[string]any{"name": "x", "namespace": namespace}
	}
	return Request{
		Operation: admissionregistrationv1.Create, Resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
		Kind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Namespace: namespace, Name: "x", Object: object, User: "system:admin",
	}
}

// attributes converts the request to the API server's type.
func (r Request) attributes() admission.Attributes {
	asObject := func(value map[string]any) runtime.Object {
		if value == nil {
			return nil
		}
		return &unstructured.Unstructured{Object: value}
	}
	return admission.NewAttributesRecord(asObject(r.Object), asObject(r.OldObject), r.Kind, r.Namespace, r.Name, r.Resource, r.Subresource,
		admission.Operation(r.Operation), nil, true, &user.DefaultInfo{Name: r.User, Groups: r.Groups})
}

// unknownObject reports whether the operation has an object that is not known, and unknownOld the same of the old object.
func (r Request) unknownObject() bool {
	return r.Object == nil && r.Operation != admissionregistrationv1.Delete
}

func (r Request) unknownOld() bool {
	return r.OldObject == nil && (r.Operation == admissionregistrationv1.Update || r.Operation == admissionregistrationv1.Delete)
}
