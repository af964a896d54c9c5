// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/values"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// The API server validates an object after policies and webhooks have changed it. Here, its metadata is, and
// a custom resource by its schema, and values of a pod that policies often set. Whether anything else that
// others than Sallyport's webhooks set is valid is not known.

// checkResult returns the refusal of a result that is not valid.
func (e *evaluation) checkResult(ctx context.Context, a *attributes) error {
	object := a.GetObject()
	var changed []*Step
	for _, s := range e.result.Steps {
		_, own := e.own[s.Name[strings.Index(s.Name, "/")+1:]]
		if len(s.Changes) > 0 && (s.Phase != lint.MutatingWebhooks || !own) {
			changed = append(changed, s)
		}
	}
	if object == nil || len(changed) == 0 {
		return nil
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	invalid := apivalidation.ValidateObjectMetaAccessor(m, e.Request.Namespace != "" && m.GetNamespace() != "", func(string, bool) []string { return nil }, field.NewPath("metadata"))
	if m.GetName() == "" { // it is generated
		invalid = slices.DeleteFunc(invalid, func(err *field.Error) bool { return err.Field == "metadata.name" })
	}
	gvk := a.GetKind()
	if e.kinds.definitions.Knows(gvk) {
		at, err := content(object)
		if err != nil {
			return err
		}
		body, _ := at.(map[string]any)
		more, err := e.kinds.definitions.Validate(ctx, gvk, body)
		if err != nil {
			return err
		}
		invalid = append(invalid, more...)
	}
	if len(invalid) > 0 {
		names := make([]string, len(changed))
		for i, s := range changed {
			names[i] = s.Name
		}
		changed[len(changed)-1].Messages = append(changed[len(changed)-1].Messages, "the object is not valid after "+strings.Join(names, ", "))
		return apierrors.NewInvalid(gvk.GroupKind(), m.GetName(), invalid)
	}
	if e.kinds.definitions.Knows(gvk) {
		return nil
	}
	isPod := gvk == corev1.SchemeGroupVersion.WithKind("Pod")
	for _, s := range changed {
		for _, change := range s.Changes {
			if path := values.Unchecked(change.Operation, isPod); path != "" {
				e.result.Unknown = append(e.result.Unknown, s.Name+": it sets "+manifest.FieldPath(jsontext.Pointer(path))+": whether the API server accepts the value")
				break
			}
		}
	}
	if pod, ok := object.(*corev1.Pod); ok && !values.Consistent(pod) {
		e.result.Unknown = append(e.result.Unknown, changed[len(changed)-1].Name+": whether the API server accepts the pod's containers")
	}
	return nil
}
