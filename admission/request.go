// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A call is the context of one typed handler: it carries the request, and takes
// what the handler says beside its decision.
type call struct {
	context.Context
	req *admissionv1.AdmissionRequest

	mu       sync.Mutex // handlers may start goroutines
	warnings []string
	audit    map[string]string
	old      runtime.Object
}

type callKey struct{}

func newCall(ctx context.Context, req *admissionv1.AdmissionRequest) *call {
	return &call{Context: ctx, req: req}
}

// Value finds the call itself, and its logger, in contexts derived from it.
func (c *call) Value(key any) any {
	switch key {
	case callKey{}:
		return c
	case loggerKey:
		return c.logger()
	}
	return c.Context.Value(key)
}

func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// response adds to a decision what was said beside it.
func (c *call) response(resp *Response) *Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	resp.Warnings = append(resp.Warnings, c.warnings...)
	resp.AuditAnnotations = mergeAudit(resp.AuditAnnotations, c.audit)
	return resp
}

// RequestFrom returns the request of a typed handler: operation, user, resource and
// sub-resource, dry run, options. It must not be modified. Nil if ctx is not that of a
// typed handler.
//
// The API server always sets DryRun. A handler whose webhook declares side effects
// NoneOnDryRun must check it; others need not.
func RequestFrom(ctx context.Context) *admissionv1.AdmissionRequest {
	if c := callFrom(ctx); c != nil {
		return c.req
	}
	return nil
}

// OldFrom decodes the object as it was before an UPDATE, or the object that a DELETE
// deletes. An error means that the request has none (CREATE, CONNECT), or that it cannot be
// decoded as T; a handler that returns the error denies the request with 400 Bad Request.
func OldFrom[T runtime.Object](ctx context.Context) (T, error) {
	var none T
	c := callFrom(ctx)
	if c == nil {
		return none, errNoCall
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.old.(T); ok {
		return old, nil
	}
	old, err := decodeAs[T](c.req.OldObject.Raw, "old object")
	if err == nil {
		c.old = old
	}
	return old, err
}

// OptionsFrom decodes the options of the operation: *metav1.CreateOptions,
// *metav1.UpdateOptions or *metav1.DeleteOptions. CONNECT has none: there the
// options are the object. Errors are as those of [OldFrom].
func OptionsFrom[T runtime.Object](ctx context.Context) (T, error) {
	var none T
	c := callFrom(ctx)
	if c == nil {
		return none, errNoCall
	}
	return decodeAs[T](c.req.Options.Raw, "options")
}

func decodeAs[T runtime.Object](raw []byte, what string) (T, error) {
	var none T
	t := targetOf[T]()
	if t.err != nil {
		return none, t.err
	}
	object, err := t.decode(raw, what)
	if err != nil {
		return none, err
	}
	return object.(T), nil
}

var errNoCall = fmt.Errorf("the context is not that of a typed handler: pass the context of the handler")

// Warn shows warnings to the user who made the request, whatever the decision; see
// [Response]. It does nothing if ctx is not that of a typed handler.
func Warn(ctx context.Context, warnings ...string) {
	if c := callFrom(ctx); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.warnings = append(c.warnings, warnings...)
	}
}

// Audit adds an annotation to the audit event of the request, as
// "<webhook name>/<key>". A key has at most 63 characters and no slash: the API
// server drops others, which the server of the webhook logs. Nothing secret belongs here. It does nothing if ctx is not
// that of a typed handler.
func Audit(ctx context.Context, key, value string) {
	if c := callFrom(ctx); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.audit = mergeAudit(c.audit, map[string]string{key: value})
	}
}

// mergeAudit adds to a map that may be nil. The later value counts.
func mergeAudit(into, from map[string]string) map[string]string {
	if into == nil && len(from) > 0 {
		into = make(map[string]string, len(from))
	}
	for key, value := range from {
		into[key] = value
	}
	return into
}
