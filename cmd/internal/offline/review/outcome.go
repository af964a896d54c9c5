// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
)

// A Question is a request about an object, as the API server would send it to webhooks.
type Question struct {
	replay.Review
	Object *manifest.Object
}

// An Outcome is the outcome of a request about an object.
type Outcome struct {
	*replay.Result
	Object *manifest.Object
	// PodDefaults says what became of each PodDefault.
	PodDefaults *poddefault.Trace
	// Verdict replaces the usual verdict on a changed object; empty for the usual one.
	Verdict string
	// OriginsBefore are the origins of fields in the object before the review; nil if there are
	// none.
	OriginsBefore []admission.Origin
	// Remarks are about PodDefaults that change nothing in an object that is allowed. They have no values of PodDefaults.
	Remarks []string
	// Unanswered says why it is not known whether the API server accepts the object; empty if it is known, or was
	// not asked.
	Unanswered string
	// Elsewhere says that all PodDefaults are in other namespaces than a pod; empty if not.
	Elsewhere string
	// Unknown lists inputs of the API server's answer that are not in the files.
	Unknown []string

	recorded bool // the request is that of an AdmissionReview
}

// An Asker holds what requests about objects have in common.
type Asker struct {
	Operation admissionv1.Operation
	Namespace string // for objects without one
	User      authenticationv1.UserInfo
	// Resources are the known resources. Kinds that it lacks get a guessed resource.
	Resources *resources.Set
}

// Ask returns the question about an object. Old is nil if there is no old object.
func (a Asker) Ask(o, old *manifest.Object) Question {
	req := &admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind(o.GVK()),
		Name:      o.Name,
		Namespace: cmp.Or(o.Namespace, a.Namespace),
		Operation: a.Operation,
		DryRun:    new(true),
		UserInfo:  a.User,
	}
	q := Question{Object: o, Review: replay.Review{Request: req}}
	if a.Resources != nil {
		if known := a.Resources.OfKind(o.GVK()); known != nil {
			req.Resource, q.Equivalents = metav1.GroupVersionResource(known.GroupVersionResource), known.Equivalents
			switch {
			case known.Group == "" && known.Resource == "namespaces":
				req.Namespace = o.Name // as the API server sets it
			case !known.Namespaced:
				req.Namespace = ""
			}
		}
	}
	if req.Operation != admissionv1.Delete {
		req.Object = runtime.RawExtension{Raw: o.Raw}
	}
	if old != nil {
		req.OldObject = runtime.RawExtension{Raw: old.Raw}
	}
	replay.Complete(req)
	return q
}

// Decide sends a question to the webhooks.
func Decide(ctx context.Context, q Question, webhooks []admission.Webhook) (*Outcome, error) {
	trace := &poddefault.Trace{}
	result, err := q.Run(poddefault.WithTrace(ctx, trace), webhooks)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", q.Object.At(), q.Object.Title(), err)
	}
	return &Outcome{Result: result, Object: q.Object, PodDefaults: trace}, nil
}
