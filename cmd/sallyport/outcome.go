// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/wire"
)

// An outcome is what became of one object.
type outcome struct {
	object    *object
	operation admissionv1.Operation
	namespace string // of the request
	user      authenticationv1.UserInfo
	before    jsontext.Value
	after     jsontext.Value
	called    []string // names of webhooks
	changed   []string // those of them that sent a patch
	denied    *metav1.Status
	deniedBy  string
	warnings  []string
	origins   []admission.Origin
	// originsBefore are those of what is in before; nil if nothing is of theirs.
	originsBefore []admission.Origin
	// verdict is said of an object that was changed; empty for the usual.
	verdict string
	patches []jsontext.Value
	answers []jsontext.Value
}

// decide sends one object through the webhooks whose rules cover the request, one
// after the other, each on what the one before left, until one denies it.
func decide(ctx context.Context, object *object, operation admissionv1.Operation, namespace string, user authenticationv1.UserInfo, webhooks []admission.Webhook) (*outcome, error) {
	if object.Namespace != "" {
		namespace = object.Namespace
	}
	out := &outcome{object: object, operation: operation, namespace: namespace, user: user, before: object.raw, after: object.raw}
	for _, webhook := range webhooks {
		req := out.request()
		if !concerns(webhook.Rules, req) {
			continue
		}
		out.called = append(out.called, webhook.Name)
		if err := out.call(ctx, webhook, req); err != nil {
			return nil, fmt.Errorf("webhook %s: %w", webhook.Name, err)
		}
		if out.denied != nil {
			break
		}
	}
	return out, nil
}

// request is what the API server would send for the object. Its UID follows from
// the object, so that the same input gives the same output.
func (out *outcome) request() *admissionv1.AdmissionRequest {
	gvk := out.object.gvk()
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	sum := sha256.Sum256(out.after)
	req := &admissionv1.AdmissionRequest{
		UID:       types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])),
		Kind:      metav1.GroupVersionKind(gvk),
		Resource:  metav1.GroupVersionResource(resource),
		Name:      out.object.Name,
		Namespace: out.namespace,
		Operation: out.operation,
		DryRun:    new(true),
		UserInfo:  out.user,
	}
	req.RequestKind, req.RequestResource = &req.Kind, &req.Resource
	if out.operation != admissionv1.Delete {
		req.Object = runtime.RawExtension{Raw: out.after}
	}
	if out.operation != admissionv1.Create {
		req.OldObject = runtime.RawExtension{Raw: out.before}
	}
	return req
}

// call walks the way of a call in serve, from the bytes of the review on.
func (out *outcome) call(ctx context.Context, webhook admission.Webhook, req *admissionv1.AdmissionRequest) error {
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
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
func concerns(rules []admissionregistrationv1.RuleWithOperations, req *admissionv1.AdmissionRequest) bool {
	covers := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	for _, rule := range rules {
		operation := slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) ||
			slices.Contains(rule.Operations, admissionregistrationv1.OperationType(req.Operation))
		if operation && covers(rule.APIGroups, req.Resource.Group) && covers(rule.APIVersions, req.Resource.Version) &&
			(covers(rule.Resources, req.Resource.Resource) || slices.Contains(rule.Resources, "*/*")) {
			return true
		}
	}
	return false
}
