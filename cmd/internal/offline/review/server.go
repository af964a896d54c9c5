// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// APIServer is what denies an object that the webhooks allow and the API server refuses.
const APIServer = "API server"

// A Server is an API server that a run asks about what the webhooks allow.
type Server struct {
	Pods *dryrun.Pods
	// Resources are those of the API server.
	Resources *resources.Set
}

// AskPod asks an API server about a new pod that the webhooks allow. Controller creates it; it has no name if there
// is none.
func (o *Outcome) AskPod(ctx context.Context, server *dryrun.Pods, controller metav1.OwnerReference) (*dryrun.Answer, error) {
	answer, err := server.Ask(ctx, dryrun.Pod{Namespace: o.Request.Namespace, Before: o.Before, After: o.After, Controller: controller, Origins: o.Origins()})
	if err == nil {
		o.take(answer)
	}
	return answer, err
}

func (o *Outcome) take(answer *dryrun.Answer) {
	switch answer.Verdict {
	case dryrun.Refused:
		o.Denied, o.DeniedBy = answer.Status, APIServer
	case dryrun.Unknown:
		o.Unanswered = answer.Reason
	}
}

// ask asks about an object that the webhooks allow.
func (s *Server) ask(ctx context.Context, o *Outcome, controller metav1.OwnerReference) error {
	if s == nil || o.Denied != nil || o.Unanswered != "" {
		return nil
	}
	gvk := o.Object.GVK()
	known := s.Resources.OfKind(gvk)
	update := o.Request.Operation == admissionv1.Update && !o.recorded
	switch {
	case o.Request.Operation != admissionv1.Create && !update || o.Request.SubResource != "":
		o.Unanswered = "of recorded requests, the API server is only asked about creations of objects"
		return nil
	case known == nil:
		o.Unanswered = fmt.Sprintf("the cluster has no kind %s of %s", gvk.Kind, gvk.GroupVersion())
		return nil
	case gvk == workload.PodKind && !update:
		_, err := o.AskPod(ctx, s.Pods, controller)
		return err
	}
	req := of(o.Request, known)
	req.Object.Raw = o.After
	ask := s.Pods.Server.Ask
	if update {
		ask = s.Pods.Server.Apply
	}
	answer, err := ask(ctx, req)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", o.Object.At(), o.Object.Title(), err)
	}
	if answer.NoNamespace {
		o.Unanswered = answer.Said
		return nil
	}
	answer, _ = answer.Explained(o.Origins())
	o.take(answer)
	return nil
}

// of returns a request about a resource of the API server.
func of(req *admissionv1.AdmissionRequest, known *resources.Resource) *admissionv1.AdmissionRequest {
	out := req.DeepCopy()
	if out.Resource = metav1.GroupVersionResource(known.GroupVersionResource); !known.Namespaced {
		out.Namespace = ""
	}
	return out
}

// asUpdate returns the question about an object of a file as an update if the cluster has the object. Reason says why that
// is not known.
func (r *reviewing) asUpdate(ctx context.Context, o *manifest.Object, q Question) (out Question, reason string, err error) {
	if r.Server == nil || o.IsAdmissionReview() || q.Request.Operation != admissionv1.Create || q.Request.Name == "" {
		return q, "", nil
	}
	known := r.Server.Resources.OfKind(o.GVK())
	if known == nil {
		return q, "", nil
	}
	raw, err := r.Server.Pods.Server.Stored(ctx, of(q.Request, known))
	switch {
	case ctx.Err() != nil:
		return q, "", ctx.Err()
	case err != nil:
		return q, "whether the object exists is not known: " + err.Error(), nil
	case raw == nil:
		return q, "", nil
	}
	old, err := manifest.FromJSON(raw)
	if err != nil {
		return q, "", err
	}
	r.updates++
	asker := r.asker
	asker.Operation = admissionv1.Update
	out = asker.Ask(o, old[0])
	out.Request.Namespace = q.Request.Namespace
	return out, "", nil
}

// errUnknown is the error about an object of which the API server's answer is not known.
func (o *Outcome) errUnknown() error {
	if o.Unanswered == "" || o.Denied != nil {
		return nil
	}
	return o.Object.ErrorAt("", fmt.Sprintf("%s: whether the API server accepts it is not known: %s", o.Object.Title(), o.Unanswered))
}
