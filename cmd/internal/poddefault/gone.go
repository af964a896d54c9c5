// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// tellGone adds [meta.GoneAnnotation] to the response to an admitted pod where necessary. The merge, nil
// if there is none, knows the labels that the pod gets.
func (h *handler) tellGone(response *admission.Response, pod *meta.Metadata, merged *merge.Merge) *admission.Response {
	if h.gone == nil || h.excluded || !response.Allowed {
		return response
	}
	texts := h.gone(pod.Namespace, pod.Labels.With(merged.AddedLabels()))
	if len(texts) == 0 {
		return response
	}
	told := pod.Annotations.Get(meta.GoneAnnotation)
	if told != "" {
		texts = append(texts, strings.Split(told, ",")...)
	}
	slices.Sort(texts)
	value := strings.Join(slices.Compact(texts), ",")
	if value == told {
		return response
	}
	tell := jsonpatch.Operation{Op: jsonpatch.Add, Path: plan.AnnotationsPath + jsonpatch.Pointer(meta.GoneAnnotation), Value: meta.Quote(value)}
	if pod.RawAnnotations.Kind() != '{' && !slices.ContainsFunc(response.Patch, func(op jsonpatch.Operation) bool {
		return strings.HasPrefix(op.Path, plan.AnnotationsPath)
	}) {
		tell.Path, tell.Value = plan.AnnotationsPath, plan.Encode(map[string]string{meta.GoneAnnotation: value})
	}
	response.Patch = append(response.Patch, tell)
	return response
}
