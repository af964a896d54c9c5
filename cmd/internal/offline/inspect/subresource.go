// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// subresourceKind returns the kind of the objects of a subresource; that of the resource if it has none of
// its own.
func subresourceKind(resource schema.GroupResource, subresource string, kind schema.GroupVersionKind) schema.GroupVersionKind {
	switch {
	case subresource == "scale":
		return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	case resource == corev1.Resource("pods") && subresource == "eviction":
		return policyv1.SchemeGroupVersion.WithKind("Eviction")
	case resource == corev1.Resource("pods") && subresource == "binding":
		return corev1.SchemeGroupVersion.WithKind("Binding")
	case resource == corev1.Resource("serviceaccounts") && subresource == "token":
		return authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
	}
	return kind
}

// scaleOf returns the Scale of an object of Kubernetes, as the API server makes it:
// k8s.io/kubernetes/pkg/registry/apps/deployment/storage.
func scaleOf(of *manifest.Object, content map[string]any) (map[string]any, error) {
	scale := &autoscalingv1.Scale{TypeMeta: metav1.TypeMeta{APIVersion: autoscalingv1.SchemeGroupVersion.String(), Kind: "Scale"}}
	var body struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Replicas *int32                `json:"replicas"`
			Selector *metav1.LabelSelector `json:"selector"`
		} `json:"spec"`
		Status struct {
			Replicas int32 `json:"replicas"`
		} `json:"status"`
	}
	known := of.GVK().Group == "apps" && of.GVK().Version == "v1"
	if !known {
		return nil, fmt.Errorf("%s: the Scale of %s is not known here: give the old object as autoscaling/v1, Scale", of.At(), of.Title())
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &body); err != nil {
		return nil, of.ErrorAt("", err.Error())
	}
	selector, err := metav1.LabelSelectorAsSelector(body.Spec.Selector)
	if err != nil {
		return nil, of.ErrorAt("/spec/selector", err.Error())
	}
	scale.ObjectMeta = metav1.ObjectMeta{Name: body.Name, Namespace: body.Namespace, UID: body.UID, ResourceVersion: body.ResourceVersion, CreationTimestamp: body.CreationTimestamp}
	scale.Spec.Replicas = 1
	if body.Spec.Replicas != nil {
		scale.Spec.Replicas = *body.Spec.Replicas
	}
	scale.Status = autoscalingv1.ScaleStatus{Replicas: body.Status.Replicas, Selector: selector.String()}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(scale)
	if body.CreationTimestamp.IsZero() {
		unstructured.RemoveNestedField(out, "metadata", "creationTimestamp")
	}
	return out, err
}
