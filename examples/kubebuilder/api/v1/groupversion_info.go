// SPDX-License-Identifier: Apache-2.0

// Package v1 has the API types of the group fleet.example.com.
// +kubebuilder:object:generate=true
// +groupName=fleet.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is that of the types.
	GroupVersion = schema.GroupVersion{Group: "fleet.example.com", Version: "v1"}

	schemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &Captain{}, &CaptainList{})
		metav1.AddToGroupVersion(scheme, GroupVersion)
		return nil
	})

	// AddToScheme adds the types to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)
