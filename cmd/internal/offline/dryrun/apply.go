// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Stored returns the object that a request would create or change, as the API server has stored it; nil if it does not
// exist.
func (s *Server) Stored(ctx context.Context, req *admissionv1.AdmissionRequest) ([]byte, error) {
	stored, err := s.resource(req).Get(ctx, req.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return stored.MarshalJSON()
}

// Apply asks about the change of a stored object, the old one of a request, to its new one, as `kubectl apply` makes it.
// Fields that the new object does not have, and that were not applied before, stay. An object that was applied by the
// server is applied by it as the same field manager, who takes over the fields of others.
func (s *Server) Apply(ctx context.Context, req *admissionv1.AdmissionRequest) (*Answer, error) {
	object, stored := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(req.Object.Raw, &object.Object); err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(req.OldObject.Raw, &stored.Object); err != nil {
		return nil, err
	}
	object.SetGroupVersionKind(schema.GroupVersionKind(req.Kind))
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	last, applied := stored.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	var out *unstructured.Unstructured
	manager := applier(stored)
	if !applied && manager != "" {
		var err error
		out, err = s.resource(req).Apply(ctx, req.Name, object, metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: manager, Force: true})
		return judgeApplied(ctx, out, err)
	}
	kind, patch, err := threeWay(schema.GroupVersionKind(req.Kind), []byte(last), object, stored)
	if err != nil {
		return unknown("its change cannot be computed: %v", err), nil
	}
	if string(patch) == "{}" {
		return &Answer{Verdict: Accepted, Object: stored.Object}, nil // nothing is sent
	}
	out, err = s.resource(req).Patch(ctx, req.Name, kind, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: s.FieldManager})
	return judgeApplied(ctx, out, err)
}

func judgeApplied(ctx context.Context, out *unstructured.Unstructured, err error) (*Answer, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	answer := Judge(err, admissionv1.Update)
	if err == nil && out != nil {
		answer.Object = out.Object
	}
	return answer, nil
}

// applier returns a field manager that has applied an object by the server; empty if none has.
func applier(stored *unstructured.Unstructured) string {
	for _, entry := range stored.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return entry.Manager
		}
	}
	return ""
}

// threeWay returns the patch of `kubectl apply`. Last is what was applied before.
func threeWay(kind schema.GroupVersionKind, last []byte, object, stored *unstructured.Unstructured) (types.PatchType, []byte, error) {
	if len(last) > 0 {
		var was unstructured.Unstructured
		if utiljson.Unmarshal(last, &was.Object) != nil {
			last = nil
		}
	}
	modified, err := json.Marshal(object.Object)
	if err != nil {
		return "", nil, err
	}
	current, err := json.Marshal(stored.Object)
	if err != nil {
		return "", nil, err
	}
	typed, err := scheme.Scheme.New(kind)
	if err != nil { // a custom resource
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(last, modified, current)
		return types.MergePatchType, patch, err
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return "", nil, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(last, modified, current, meta, true)
	return types.StrategicMergePatchType, patch, err
}
