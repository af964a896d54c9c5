// SPDX-License-Identifier: Apache-2.0

package replay

import (
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Complete fills in the fields that follow from the request's operation and kind, if they are
// empty: the resource (a guess), the requested kind and resource, and the options.
func Complete(req *admissionv1.AdmissionRequest) {
	if req.Resource == (metav1.GroupVersionResource{}) {
		guess, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind(req.Kind))
		req.Resource = metav1.GroupVersionResource(guess)
	}
	if req.RequestKind == nil {
		req.RequestKind = &req.Kind
	}
	if req.RequestResource == nil {
		req.RequestResource, req.RequestSubResource = &req.Resource, req.SubResource
	}
	if kind, ok := optionsKinds[req.Operation]; ok && len(req.Options.Raw) == 0 {
		req.Options.Raw = []byte(`{"kind":"` + kind + `","apiVersion":"meta.k8s.io/v1"}`)
	}
}

var optionsKinds = map[admissionv1.Operation]string{
	admissionv1.Create: "CreateOptions", admissionv1.Update: "UpdateOptions", admissionv1.Delete: "DeleteOptions",
}
