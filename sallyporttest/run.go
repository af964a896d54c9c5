// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
)

// Case is a request and its expected response. With only a Review, the object must be
// allowed.
type Case struct {
	Review Review

	// NotCalled expects that the API server does not call the webhook, because of its
	// rules, selectors or match conditions. See [RunWebhook].
	NotCalled bool
	// MatchConditions evaluates the match conditions of the webhook. It is required for a webhook
	// that has some: take Evaluate of sallyporttest/matchconditions, a module of its own, because it
	// needs packages of the API server. It returns why the API server does not call the webhook, empty if it
	// does. An error means that the API server denies the request; without a request, that it refuses the webhook.
	MatchConditions func(ctx context.Context, webhook admission.Webhook, request *admissionv1.AdmissionRequest) (why string, err error)

	// Denied is the reason or a part of the message of an expected denial. Code is the
	// expected status code, and Causes are the expected fields of the causes, in order, if
	// they are set.
	Denied string
	Code   int32
	Causes []string
	// Fault is a part of the error of an expected fault, for which the failurePolicy would
	// decide.
	Fault string

	// Want is the expected object: a runtime.Object, of which the fields of its type are
	// compared, or a string or []byte with JSON or YAML, compared completely. Unchanged
	// expects no patch. If neither is set, any patch is accepted.
	Want      any
	Unchanged bool
	// Warnings are the expected warnings, if not nil.
	Warnings []string

	// NotIdempotent permits the handler to change its own result again. The API server may
	// call a mutating webhook again (reinvocationPolicy), so this is a defect unless it is
	// intended.
	NotIdempotent bool
	// RefusesUnknownFields means that the handler denies objects with unknown fields, so
	// that preserving them cannot be tested.
	RefusesUnknownFields bool
	// Timeout is how long the handler may take. Default the webhook's timeout or 5 s.
	Timeout time.Duration
	// Context is the parent of the handler's context, see [CacheContext]. Default: the test's.
	Context context.Context
}

// Result is the result of a case.
type Result struct {
	// Response is the decision, with its origins. Nil after a fault.
	Response *admission.Response
	// Object is the object of the request as patched, JSON.
	Object []byte
}

// Run sends the request of a case to a handler as a server would, and reports with t.Errorf
// any difference from the expected response, and violations of these rules:
//
//   - the API server's own: the answer has the UID, version and kind of the review; a patch
//     has a type, comes from a mutating webhook for a request with an object, is not part
//     of a denial, and applies cleanly; keys of audit annotations are valid, and warnings
//     are not truncated;
//   - the same request gets the same answer, and the handler does not change the request;
//   - the handler changes nothing in its own result (see NotIdempotent);
//   - unknown fields are preserved, in the same list elements. Run adds such fields to the
//     root, metadata, spec, status and list elements of the object.
//
// Run treats the handler as one of a mutating webhook; see [RunWebhook]. It calls the
// handler several times. A panic, which a server would turn into a fault, fails the test.
func Run(t testing.TB, handler admission.Handler, c Case) Result {
	t.Helper()
	webhook := admission.Mutating("handler.sallyporttest.example.com", nil, handler)
	if envelope, err := c.Review.open(); err == nil {
		r := envelope.Request
		resource := schema.GroupVersionResource(r.Resource)
		if r.SubResource != "" {
			resource.Resource += "/" + r.SubResource
		}
		webhook.Rules = admission.Rules(resource, admissionregistrationv1.OperationType(r.Operation))
	}
	return report(t, webhook, c)
}

// RunWebhook is [Run] for a whole webhook. It also reports an invalid definition, and a webhook
// that the API server would not call because its rules or selectors do not match or a match
// condition is false. [Case].MatchConditions compiles and evaluates match conditions with the API
// server's code; one that does not compile is reported.
func RunWebhook(t testing.TB, webhook admission.Webhook, c Case) Result {
	t.Helper()
	return report(t, webhook, c)
}

func report(t testing.TB, webhook admission.Webhook, c Case) Result {
	t.Helper()
	if copies, ok := webhook.Handler.(interface{ CopyProblem() string }); ok && copies.CopyProblem() != "" {
		t.Logf("warning: %s; other code that copies these objects, such as caches, loses changes", copies.CopyProblem())
	}
	if c.Context == nil {
		c.Context = t.Context()
	}
	result, problems := run(c.Context, webhook, c)
	for _, problem := range problems {
		t.Errorf("%s", problem)
	}
	return result
}

// A runner calls one webhook and records problems.
type runner struct {
	webhook  admission.Webhook
	admit    *wire.Admission
	timeout  time.Duration
	problems []string
}

func (r *runner) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func run(ctx context.Context, webhook admission.Webhook, c Case) (Result, []string) {
	webhook = webhook.Defaulted()
	r := &runner{webhook: webhook, timeout: c.Timeout}
	if r.timeout == 0 {
		r.timeout = time.Duration(webhook.TimeoutSeconds) * time.Second
	}
	envelope, err := c.Review.open()
	if err != nil {
		r.problem("invalid Review: %v", err)
		return Result{}, r.problems
	}
	if r.admit, err = wire.NewAdmission(webhook, wire.AdmissionOptions{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		r.problem("the webhook is not valid: %v", err)
		return Result{}, r.problems
	}
	if err := checkMatchConditions(ctx, webhook, c.MatchConditions); err != nil {
		r.problem("%v", err)
		return Result{}, r.problems
	}
	if !r.called(ctx, c, envelope.Request) {
		return Result{Object: envelope.Request.Object.Raw}, r.problems
	}
	return r.check(ctx, c, envelope), r.problems
}

func (r *runner) check(ctx context.Context, c Case, envelope *admissionv1.AdmissionReview) Result {
	reviewed, err := r.ask(ctx, c.Review.body)
	if err != nil {
		var fault *wire.Fault
		switch {
		case c.Fault == "":
			code, hint := 0, ""
			if errors.As(err, &fault) {
				code, hint = fault.Code, fault.Hint()
			}
			if hint != "" {
				hint = " (" + hint + ")"
			}
			r.problem("the webhook is at fault, HTTP %d: %v%s", code, err, hint)
		case !strings.Contains(err.Error(), c.Fault):
			r.problem("the webhook is at fault with %q, which does not hold %q", err, c.Fault)
		}
		return Result{}
	}
	if c.Fault != "" {
		r.problem("the webhook decides (%s); it should be at fault with %q", outcome(reviewed.Response), c.Fault)
	}
	patch, problems := verifyAnswer(r.webhook, envelope, reviewed.Answer)
	r.problems = append(r.problems, problems...)

	again, err := r.ask(admission.WithOrigins(ctx), c.Review.body)
	switch {
	case err != nil:
		r.problem("the webhook answers once, and is at fault when it is asked again: %v", err)
		again = reviewed
	case !bytes.Equal(again.Answer, reviewed.Answer):
		r.problem("the same question gets two answers (does a map's order show?):\n%s", diff("the first", "the second", pretty(reviewed.Answer), pretty(again.Answer)))
	}
	result := Result{Response: again.Response, Object: envelope.Request.Object.Raw}
	if len(problems) > 0 {
		return result
	}
	r.checkDecision(c, reviewed.Response)
	if patch != nil {
		if result.Object, err = replay.Apply(envelope.Request.Object.Raw, patch); err != nil {
			r.problem("the patch does not apply: %v; it is %s", err, patch)
			return result
		}
	}
	if !reviewed.Response.Allowed {
		return result
	}
	r.checkObject(c, envelope.Request.Object.Raw, result.Object, patch)
	if patch != nil {
		r.checkIdempotence(ctx, c, envelope, result.Object)
		r.checkUnknownFields(ctx, c, envelope, result.Object)
	}
	return result
}

// ask sends the review. The bytes must stay unchanged.
func (r *runner) ask(ctx context.Context, body []byte) (*wire.Reviewed, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	own := bytes.Clone(body)
	reviewed, err := r.admit.Review(ctx, own)
	if !bytes.Equal(own, body) {
		r.problem("the handler writes into the bytes of the request:\n%s", diff("before", "after", pretty(body), pretty(own)))
	}
	return reviewed, err
}

func (r *runner) checkDecision(c Case, response *admission.Response) {
	if c.Warnings != nil && !slices.Equal(c.Warnings, response.Warnings) {
		r.problem("the warnings are %q, want %q", response.Warnings, c.Warnings)
	}
	denied := c.Denied != "" || c.Code != 0 || c.Causes != nil
	switch {
	case response.Allowed && denied:
		r.problem("it is allowed; it should be denied with %q", c.Denied)
		return
	case !response.Allowed && !denied && c.Fault == "":
		r.problem("it is %s; it should be allowed", outcome(response))
		return
	case response.Allowed || !denied:
		return
	}
	status := response.Status
	if status == nil {
		r.problem("it is denied without a status, so that the client does not learn why; want %q", c.Denied)
		return
	}
	if !strings.Contains(status.Message, c.Denied) && !strings.Contains(string(status.Reason), c.Denied) {
		r.problem("it is %s; want %q", outcome(response), c.Denied)
	}
	if c.Code != 0 && status.Code != c.Code {
		r.problem("it is denied with code %d, want %d", status.Code, c.Code)
	}
	if c.Causes != nil {
		var fields []string
		if status.Details != nil {
			for _, cause := range status.Details.Causes {
				fields = append(fields, cause.Field)
			}
		}
		if !slices.Equal(fields, c.Causes) {
			r.problem("the causes are about %q, want %q", fields, c.Causes)
		}
	}
}

func outcome(response *admission.Response) string {
	switch {
	case response.Allowed:
		return "allowed"
	case response.Status == nil:
		return "denied without a status"
	}
	message := response.Status.Message
	if message == "" {
		message = string(response.Status.Reason)
	}
	return fmt.Sprintf("denied, code %d: %q", response.Status.Code, message)
}

func (r *runner) checkObject(c Case, before, after, patch []byte) {
	if c.Unchanged && patch != nil {
		r.problem("it is changed:\n%s", diff("before", "after", pretty(before), pretty(after)))
	}
	if c.Want == nil {
		return
	}
	want, got, err := comparison(c.Want, after)
	if err != nil {
		r.problem("the expected object cannot be compared: %v", err)
		return
	}
	if want != got {
		r.problem("another object comes out:\n%s", diff("want", "got", want, got))
	}
}

func (r *runner) checkIdempotence(ctx context.Context, c Case, envelope *admissionv1.AdmissionReview, object []byte) {
	if c.NotIdempotent {
		return
	}
	body, err := about(envelope, object)
	if err != nil {
		r.problem("the patched object is not one: %v", err)
		return
	}
	second, err := r.ask(ctx, body)
	switch {
	case err != nil:
		r.problem("asked about its own result the webhook is at fault: %v", err)
	case !second.Response.Allowed:
		r.problem("asked about its own result it is %s", outcome(second.Response))
	case len(second.Response.Patch) > 0:
		patch := second.Response.Patch.AppendJSON(nil)
		changed, err := replay.Apply(object, patch)
		if err != nil {
			changed = patch
		}
		if pretty(object) == pretty(changed) {
			r.problem("not idempotent, asked about its own result it sends a patch that changes nothing: %s", patch)
			return
		}
		r.problem("not idempotent, it changes its own result:\n%s", diff("first pass", "second pass", pretty(object), pretty(changed)))
	}
}

// called reports whether to continue: the API server calls the webhook, or the case expects a
// call, so that further problems are reported too.
func (r *runner) called(ctx context.Context, c Case, request *admissionv1.AdmissionRequest) bool {
	why := r.unmatched(request)
	if why == "" {
		var err error
		if why, err = uncalled(ctx, r.webhook, request, c.Review.namespaceLabels, c.MatchConditions); err != nil {
			r.problem("%v", err)
			return !c.NotCalled
		}
	}
	switch {
	case why == "" && c.NotCalled:
		r.problem("the API server calls the webhook; it should not")
		return false
	case why != "" && !c.NotCalled:
		r.problem("not called: %s", why)
	}
	return !c.NotCalled
}

// unmatched returns why the rules do not match a request, or an empty string if they do. It
// also reports rules that match another version of the object. It assumes that the API server
// serves the versions in the rules.
func (r *runner) unmatched(request *admissionv1.AdmissionRequest) string {
	var equivalents []schema.GroupVersionResource
	for _, rule := range r.webhook.Rules {
		for _, version := range rule.APIVersions {
			if version != "*" {
				equivalents = append(equivalents, schema.GroupVersionResource{Group: request.Resource.Group, Version: version, Resource: request.Resource.Resource})
			}
		}
	}
	resource, ok := r.webhook.Matches(request, equivalents...)
	if !ok {
		return fmt.Sprintf("the rules of the webhook do not match: the API server would not ask it about %s of %s", request.Operation, describeResource(request))
	}
	if resource != schema.GroupVersionResource(request.Resource) {
		r.problem("the rules of the webhook are for another version: the API server would convert the object of the %s, and ask about %s of %s",
			request.Operation, resource.Resource, resource.GroupVersion())
	}
	return ""
}

func describeResource(r *admissionv1.AdmissionRequest) string {
	resource := r.Resource.Resource
	if r.SubResource != "" {
		resource += "/" + r.SubResource
	}
	return fmt.Sprintf("%s in %s", resource, schema.GroupVersion{Group: r.Resource.Group, Version: r.Resource.Version})
}
