// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/wire"
)

// An outcome is what became of one request.
type outcome struct {
	object *object
	// version is of the AdmissionReview, req what it asks for at first.
	version string
	req     *admissionv1.AdmissionRequest
	before  jsontext.Value
	after   jsontext.Value
	called  []string // names of webhooks
	changed []string // those of them that sent a patch
	denied  *metav1.Status
	// deniedBy is the webhook that denied it.
	deniedBy string
	warnings []string
	origins  []admission.Origin
	// originsBefore are those of what is in before; nil if nothing is of theirs.
	originsBefore []admission.Origin
	// verdict is said of an object that was changed; empty for the usual.
	verdict string
	patches []jsontext.Value
	answers []jsontext.Value
}

// reviewVersion is of the reviews that are not recorded ones.
const reviewVersion = "admission.k8s.io/v1"

// A question is a request about an object, as the API server would send it to webhooks.
type question struct {
	object  *object
	version string // of the AdmissionReview
	req     *admissionv1.AdmissionRequest
}

// asker knows what requests about objects have in common.
type asker struct {
	operation admissionv1.Operation
	namespace string // of objects that name none
	user      authenticationv1.UserInfo
	kinds     *resources // nil: resources are guessed by their kinds
}

// ask is the question about an object. The old one is nil if there is none.
func (a asker) ask(o, old *object) question {
	gvk := o.gvk()
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	namespace := cmp.Or(o.Namespace, a.namespace)
	if known := a.kinds.ofKind(gvk); known != nil {
		resource = known.resource
		switch {
		case resource.Group == "" && resource.Resource == "namespaces":
			namespace = o.Name // as the API server has it
		case !known.namespaced:
			namespace = ""
		}
	}
	req := &admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind(gvk),
		Resource:  metav1.GroupVersionResource(resource),
		Name:      o.Name,
		Namespace: namespace,
		Operation: a.operation,
		DryRun:    new(true),
		UserInfo:  a.user,
	}
	req.RequestKind, req.RequestResource = &req.Kind, &req.Resource
	if req.Operation != admissionv1.Delete {
		req.Object = runtime.RawExtension{Raw: o.raw}
	}
	if old != nil {
		req.OldObject = runtime.RawExtension{Raw: old.raw}
	}
	return question{object: o, version: reviewVersion, req: req}
}

// decide sends a request through the webhooks whose rules cover it, one after the other,
// each on what the one before left, until one denies it.
func decide(ctx context.Context, q question, webhooks []admission.Webhook) (*outcome, error) {
	out := &outcome{object: q.object, version: q.version, req: q.req, before: q.object.raw, after: q.object.raw}
	for _, webhook := range webhooks {
		req := out.request()
		if !concerns(webhook.Rules, req) {
			continue
		}
		out.called = append(out.called, webhook.Name)
		if err := out.call(ctx, webhook, req); err != nil {
			return nil, fmt.Errorf("%s: %s: webhook %s: %w", q.object.at(), q.object.title(), webhook.Name, err)
		}
		if out.denied != nil {
			break
		}
	}
	return out, nil
}

// request is what the next webhook is asked. A UID that was not recorded follows from the
// object, so that the same input gives the same output.
func (out *outcome) request() *admissionv1.AdmissionRequest {
	req := *out.req
	if len(req.Object.Raw) > 0 {
		req.Object = runtime.RawExtension{Raw: out.after}
	}
	if req.UID == "" {
		sum := sha256.Sum256(out.after)
		req.UID = types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
	}
	return &req
}

// call walks the way of a call in serve, from the bytes of the review on.
func (out *outcome) call(ctx context.Context, webhook admission.Webhook, req *admissionv1.AdmissionRequest) error {
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: out.version, Kind: "AdmissionReview"},
		Request:  req,
	})
	if err != nil {
		return err
	}
	server, err := wire.NewAdmission(webhook, wire.AdmissionOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	reviewed, err := server.Review(admission.WithOrigins(ctx), body)
	if err != nil {
		return err
	}
	resp := reviewed.Response
	out.answers = append(out.answers, reviewed.Answer)
	out.warnings = append(out.warnings, resp.Warnings...)
	if !resp.Allowed {
		out.denied, out.deniedBy = &metav1.Status{}, webhook.Name
		if resp.Status != nil {
			out.denied = resp.Status
		}
		return nil
	}
	if len(resp.Patch) == 0 {
		return nil
	}
	encoded := resp.Patch.AppendJSON(nil)
	patch, err := jsonpatchv4.DecodePatch(encoded)
	if err != nil {
		return fmt.Errorf("its patch does not decode: %w", err)
	}
	after, err := patch.Apply(out.after)
	if err != nil {
		return fmt.Errorf("its patch does not apply: %w", err)
	}
	out.after = after
	out.changed = append(out.changed, webhook.Name)
	out.patches = append(out.patches, encoded)
	out.origins = append(out.origins, resp.Origins...)
	return nil
}

// concerns tells whether one of the rules covers the request. Selectors and match
// conditions belong to a cluster's configuration; the handlers see to the rest.
func concerns(of []admissionregistrationv1.RuleWithOperations, req *admissionv1.AdmissionRequest) bool {
	attributes := apiserveradmission.NewAttributesRecord(nil, nil, schema.GroupVersionKind(req.Kind), req.Namespace, req.Name,
		schema.GroupVersionResource(req.Resource), req.SubResource, apiserveradmission.Operation(req.Operation), nil, false, nil)
	return slices.ContainsFunc(of, func(rule admissionregistrationv1.RuleWithOperations) bool {
		matcher := rules.Matcher{Rule: rule, Attr: attributes}
		return matcher.Matches()
	})
}
