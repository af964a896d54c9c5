// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is bookstore.example.com/v1.
var GroupVersion = schema.GroupVersion{Group: "bookstore.example.com", Version: "v1"}

// Resource is books of this version.
var Resource = GroupVersion.WithResource("books")

// AddToScheme makes the types known to a scheme. It returns no error.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Book{}, &BookList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
