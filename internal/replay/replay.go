// SPDX-License-Identifier: Apache-2.0

// Package replay reviews requests without a server: it asks webhooks as the API server
// does, in its order, each on what the one before left, and once more those whose
// reinvocation policy wants it.
//
// What of a webhook configuration depends on a cluster takes no part: selectors and match
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

	"github.com/go-json-experiment/json/jsontext"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/wire"
)

// Version is that of reviews which are not recorded ones.
const Version = "admission.k8s.io/v1"

// A Review is a request that the API server would put to webhooks.
type Review struct {
	// Version is that of the AdmissionReview; [Version] if it is empty.
	Version string
	Request *admissionv1.AdmissionRequest
	// Equivalents are the resource of the request in other versions and groups.
	Equivalents []schema.GroupVersionResource
}

// A Result is what became of a request.
type Result struct {
	// Request is what was asked at first.
	Request *admissionv1.AdmissionRequest
	// Before is the object of the request, or, where it has none, the old one. After is what
	// it has become.
	Before, After jsontext.Value
	// Calls are those of webhooks in their order.
	Calls []Call
	// Denied is nil if the request is allowed. DeniedBy is the name of a webhook.
	Denied   *metav1.Status
	DeniedBy string
	// Warnings are shown to the user, each once.
	Warnings []string
}

// A Call is one webhook's part.
type Call struct {
	Webhook string
	// Again is set if the webhook was called before, and the object has changed since.
	Again bool
	// Before is the object that it was asked about, After what it has become.
	Before, After jsontext.Value
	// Patch is nil if the webhook changes nothing.
	Patch    jsontext.Value
	Response *admission.Response
	// Answer is the AdmissionReview as sent.
	Answer jsontext.Value
}

// Called are the names of the webhooks that were asked.
func (r *Result) Called() []string {
	return r.names(func(c *Call) bool { return !c.Again })
}

// Changed are the names of those that sent a patch.
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

// Origins say where changes come from; later ones count.
func (r *Result) Origins() []admission.Origin {
	var origins []admission.Origin
	for _, c := range r.Calls {
		if c.Patch != nil {
			origins = append(origins, c.Response.Origins...)
		}
	}
	return origins
}

// Run puts the request to the webhooks whose rules cover it: first those that mutate, in
// their order, then those that validate. The first denial ends it. The error names the
// webhook, which is at fault.
func (r Review) Run(ctx context.Context, webhooks []admission.Webhook) (*Result, error) {
	before := jsontext.Value(r.Request.Object.Raw)
	if len(before) == 0 {
		before = r.Request.OldObject.Raw
	}
	if len(before) == 0 { // a CONNECT, for one
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

// run is one pass of a review.
type run struct {
	Review
	result *Result

	// The names of webhooks that may be called once more, and of those that are to be: see
	// k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/reinvocationcontext.go.
	again            bool
	reinvocable, due []string
}

// mutate calls mutating webhooks in a row, and tells whether one has changed the object. In
// the second round those are called that were called before another one's change.
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
		if call.Patch != nil && !equal(call.Before, call.After) {
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

// ask calls one webhook. It is nil if the webhook's rules do not cover the request, or it
// was denied before.
func (r *run) ask(ctx context.Context, webhook admission.Webhook) (*Call, error) {
	if r.result.Denied != nil {
		return nil, nil
	}
	req := r.request()
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

// covers tells whether the webhook could be asked about a recorded request in the version
// that it was converted to.
func covers(webhook admission.Webhook, req *admissionv1.AdmissionRequest, resource schema.GroupVersionResource) bool {
	if webhook.MatchPolicy == admissionregistrationv1.Exact {
		return false
	}
	as := *req
	as.RequestResource = nil
	as.Resource = metav1.GroupVersionResource(resource)
	_, _, ok := admission.MatchRules(webhook.Rules, &as, nil)
	return ok
}

// request is what the next webhook is asked. A UID that was not recorded follows from the
// object, so that the same input gives the same output.
func (r *run) request() *admissionv1.AdmissionRequest {
	req := *r.Request
	if len(req.Object.Raw) > 0 {
		req.Object = runtime.RawExtension{Raw: r.result.After}
	}
	if req.UID == "" {
		sum := sha256.Sum256(r.result.After)
		req.UID = types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
	}
	return &req
}

// call walks the way of a call in serve, from the bytes of the review on.
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

// Apply applies a JSON Patch with the library that the API server uses.
func Apply(object, patch []byte) ([]byte, error) {
	decoded, err := jsonpatchv4.DecodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("its patch does not decode: %w", err)
	}
	after, err := decoded.Apply(object)
	if err != nil {
		return nil, fmt.Errorf("its patch does not apply: %w", err)
	}
	return after, nil
}
