// SPDX-License-Identifier: Apache-2.0

// Package replay reviews requests without a server. Like the API server, it calls webhooks in
// order, passes each the object as the previous one left it, and reinvokes those whose
// reinvocation policy is IfNeeded.
//
// It ignores the parts of a webhook configuration that depend on a cluster: selectors and match
// conditions.
package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// Version is the AdmissionReview version for requests that were not recorded.
const Version = "admission.k8s.io/" + reviewversion.V1

// A Review is a request that the API server would send to webhooks.
type Review struct {
	// Version is the version of the AdmissionReview; empty means [Version].
	Version string
	Request *admissionv1.AdmissionRequest
	// Equivalents lists the request's resource in other groups and versions.
	Equivalents []schema.GroupVersionResource
}

// A Result is the outcome of a request.
type Result struct {
	// Request is the original request.
	Request *admissionv1.AdmissionRequest
	// Before is the request's object or, if it has none, its old object. After is the object
	// after all mutations.
	Before, After jsontext.Value
	// Calls lists the webhook calls in order.
	Calls []Call
	// Denied is nil if the request is allowed. DeniedBy names the webhook that denied it.
	Denied   *metav1.Status
	DeniedBy string
	// Warnings are shown to the user, without duplicates.
	Warnings []string
}

// A Call is a call to one webhook.
type Call struct {
	Webhook string
	// Again is set for a reinvocation, after the object changed.
	Again bool
	// Before is the object in the request, After the object with the webhook's patch.
	Before, After jsontext.Value
	// Patch is nil if the webhook changes nothing.
	Patch    jsontext.Value
	Response *admission.Response
	// Answer is the AdmissionReview that the webhook returned.
	Answer jsontext.Value
}

// Called returns the names of the webhooks that were called.
func (r *Result) Called() []string {
	return r.names(func(c *Call) bool { return !c.Again })
}

// Changed returns the names of the webhooks that returned a patch.
func (r *Result) Changed() []string {
	return r.names(func(c *Call) bool { return c.Patch != nil })
}

func (r *Result) names(of func(*Call) bool) []string {
	var names []string
	for i := range r.Calls {
		if c := &r.Calls[i]; of(c) && !slices.Contains(names, c.Webhook) {
			names = append(names, c.Webhook)
		}
	}
	return names
}

// Origins says where each change comes from. A later origin overrides an earlier one.
func (r *Result) Origins() []admission.Origin {
	var origins []admission.Origin
	for _, c := range r.Calls {
		if c.Patch != nil {
			origins = append(origins, c.Response.Origins...)
		}
	}
	return origins
}

// Within reports whether a JSON pointer, such as the path of an origin, is at or below another one.
func Within(pointer, parent string) bool {
	return pointer == parent || strings.HasPrefix(pointer, parent+"/")
}

// Run sends the request to the webhooks whose rules cover it: the mutating webhooks in order,
// then the validating ones. The first denial ends the review. The error names the webhook that
// failed.
func (r Review) Run(ctx context.Context, webhooks []admission.Webhook) (*Result, error) {
	before := jsontext.Value(r.Request.Object.Raw)
	if len(before) == 0 {
		before = r.Request.OldObject.Raw
	}
	if len(before) == 0 { // for example a CONNECT
		before = jsontext.Value("{}")
	}
	run := &run{Review: r, result: &Result{Request: r.Request, Before: before, After: before}}
	if run.Version == "" {
		run.Version = Version
	}
	var mutating, validating []admission.Webhook
	for _, webhook := range webhooks {
		if webhook = webhook.Defaulted(); webhook.Type == admission.TypeMutating {
			mutating = append(mutating, webhook)
		} else {
			validating = append(validating, webhook)
		}
	}
	again, err := run.mutate(ctx, mutating)
	if err == nil && again {
		run.again = true
		_, err = run.mutate(ctx, mutating)
	}
	if err != nil {
		return nil, err
	}
	run.again = false
	for _, webhook := range validating {
		if _, err := run.ask(ctx, webhook); err != nil {
			return nil, err
		}
	}
	return run.result, nil
}

// run is one run of a review.
type run struct {
	Review
	result *Result

	// The webhooks that may be reinvoked, and those that must be: see
	// k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/reinvocationcontext.go.
	again            bool
	reinvocable, due []string
}

// mutate calls the mutating webhooks in order and reports whether one must be called again. The
// second round calls only the webhooks that another webhook's later change affects.
func (r *run) mutate(ctx context.Context, webhooks []admission.Webhook) (changed bool, err error) {
	for _, webhook := range webhooks {
		if r.again && !slices.Contains(r.due, webhook.Name) {
			continue
		}
		call, err := r.ask(ctx, webhook)
		if err != nil {
			return false, err
		}
		if call == nil {
			continue
		}
		if call.Patch != nil && len(r.reinvocable) > 0 && !equal(call.Before, call.After) {
			changed = true
			r.due = append(r.due, r.reinvocable...)
			r.reinvocable = nil
		}
		if webhook.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy {
			r.reinvocable = append(r.reinvocable, webhook.Name)
		}
	}
	return changed, nil
}

func equal(a, b jsontext.Value) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// ask calls one webhook. It returns nil if the webhook's rules do not cover the request, or if
// the request was denied already.
func (r *run) ask(ctx context.Context, webhook admission.Webhook) (*Call, error) {
	if r.result.Denied != nil {
		return nil, nil
	}
	req, err := r.request()
	if err != nil {
		return nil, err
	}
	resource, ok := webhook.Matches(req, r.Equivalents...)
	if !ok {
		return nil, nil
	}
	if sent := schema.GroupVersionResource(req.Resource); resource != sent && !covers(webhook, req, sent) {
		return nil, fmt.Errorf("webhook %s: the API server would convert the object to %s for it, which cannot be done here: give it in this version",
			webhook.Name, resource.GroupVersion())
	}
	call, err := r.call(ctx, webhook, req)
	if err != nil {
		return nil, fmt.Errorf("webhook %s: %w", webhook.Name, err)
	}
	r.result.Calls = append(r.result.Calls, *call)
	for _, warning := range call.Response.Warnings {
		if !slices.Contains(r.result.Warnings, warning) {
			r.result.Warnings = append(r.result.Warnings, warning)
		}
	}
	r.result.After = call.After
	if !call.Response.Allowed {
		r.result.Denied, r.result.DeniedBy = &metav1.Status{}, webhook.Name
		if call.Response.Status != nil {
			r.result.Denied = call.Response.Status
		}
	}
	return call, nil
}

// covers reports whether the webhook could receive a recorded request in the version that the
// API server converted it to.
func covers(webhook admission.Webhook, req *admissionv1.AdmissionRequest, resource schema.GroupVersionResource) bool {
	if webhook.MatchPolicy == admissionregistrationv1.Exact {
		return false
	}
	as := *req
	as.RequestResource = nil
	as.Resource = metav1.GroupVersionResource(resource)
	_, ok := admission.Webhook{Rules: webhook.Rules, MatchPolicy: admissionregistrationv1.Exact}.Matches(&as)
	return ok
}

// request returns the request for the next webhook. A missing UID is derived from the object,
// so that the same input gives the same output.
func (r *run) request() (*admissionv1.AdmissionRequest, error) {
	req := *r.Request
	if len(req.Object.Raw) > 0 {
		object := []byte(r.result.After)
		if r.again && req.Operation == admissionv1.Create {
			var err error
			if object, err = WithManagedFields(object, r.result.Before); err != nil {
				return nil, err
			}
		}
		req.Object = runtime.RawExtension{Raw: object}
	}
	if req.UID == "" {
		sum := sha256.Sum256(r.result.After)
		req.UID = types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
	}
	return &req, nil
}

// call takes the same path as a call in serve, starting from the bytes of the review.
func (r *run) call(ctx context.Context, webhook admission.Webhook, req *admissionv1.AdmissionRequest) (*Call, error) {
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: r.Version, Kind: "AdmissionReview"}, Request: req,
	})
	if err != nil {
		return nil, err
	}
	server, err := wire.NewAdmission(webhook, wire.AdmissionOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	asked := bytes.Clone(body)
	reviewed, err := server.Review(admission.WithOrigins(ctx), body)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(asked, body) {
		return nil, errors.New("it writes into the bytes of the request")
	}
	call := &Call{
		Webhook: webhook.Name, Again: r.again, Before: r.result.After, After: r.result.After, Response: reviewed.Response, Answer: reviewed.Answer,
	}
	if !reviewed.Response.Allowed || len(reviewed.Response.Patch) == 0 {
		return call, nil
	}
	call.Patch = reviewed.Response.Patch.AppendJSON(nil)
	call.After, err = Apply(call.Before, call.Patch)
	return call, err
}
