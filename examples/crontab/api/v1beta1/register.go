// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is stable.example.com/v1beta1.
var GroupVersion = schema.GroupVersion{Group: "stable.example.com", Version: "v1beta1"}

// Resource is that of CronTabs.
var Resource = GroupVersion.WithResource("crontabs")

// AddToScheme makes the types known to a scheme. It returns no error.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &CronTab{}, &CronTabList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
