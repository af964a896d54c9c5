// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Chain returns a handler that calls handlers in order, each with the object as changed by
// the previous ones, and responds with one patch. The first denial or fault ends the chain
// without a patch. Warnings and audit annotations of all called handlers are kept.
//
// Consecutive typed mutators with the same T share one decoded object, and the patch has
// their combined changes. Between other handlers the patches are applied.
//
// A chain handles the operations that all its handlers support. See [Named] and
// [WithOrigins] for the origins of changes.
func Chain(handlers ...Handler) Handler {
	c := &chain{}
	for _, handler := range handlers {
		if inner, ok := handler.(*chain); ok {
			c.links = append(c.links, inner.links...)
		} else {
			c.links = append(c.links, handler)
		}
	}
	return c
}

// Named sets the [Origin.Source] of a handler's changes. The default is the name of the
// function, or of the Defaulter's type. Origins set by the handler itself are kept.
func Named(name string, handler Handler) Handler {
	if m, ok := handler.(*mutator); ok {
		return &mutator{target: m.target, mutate: m.mutate, source: name, err: m.err}
	}
	return &named{Handler: handler, name: name}
}

type named struct {
	Handler
	name string
}

// Operations implements restricted.
func (n *named) Operations() []admissionregistrationv1.OperationType { return operationsOf(n.Handler) }

// Problems implements checked.
func (n *named) Problems() error {
	if err := checkHandler(n.Handler); err != nil {
		return fmt.Errorf("handler %q: %w", n.name, err)
	}
	return nil
}

// Handle implements [Handler].
func (n *named) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*Response, error) {
	resp, err := n.Handler.Handle(ctx, req)
	if err != nil || resp == nil || len(resp.Patch) == 0 || len(resp.Origins) > 0 || !WantsOrigins(ctx) {
		return resp, err
	}
	t := &trace{root: &traced{raw: req.Object.Raw}}
	if err := t.apply(resp.Patch, n.name); err != nil {
		return nil, err
	}
	resp.Origins = t.origins()
	return resp, nil
}

type chain struct{ links []Handler }

// Operations implements restricted.
func (c *chain) Operations() []admissionregistrationv1.OperationType {
	common := operations
	for _, link := range c.links {
		answered := operationsOf(link)
		common = slices.DeleteFunc(slices.Clone(common), func(o admissionregistrationv1.OperationType) bool {
			return !slices.Contains(answered, o)
		})
	}
	return common
}

// CopyProblem tells of the first link that has one.
func (c *chain) CopyProblem() string {
	for _, link := range c.links {
		if copies, ok := link.(interface{ CopyProblem() string }); ok && copies.CopyProblem() != "" {
			return copies.CopyProblem()
		}
	}
	return ""
}

// Problems implements checked.
func (c *chain) Problems() error {
	if len(c.links) == 0 {
		return errors.New("the chain has no handlers")
	}
	var errs []error
	for i, link := range c.links {
		if err := checkHandler(link); err != nil {
			errs = append(errs, fmt.Errorf("handler %d of the chain: %w", i+1, err))
		}
	}
	if len(errs) == 0 && len(c.Operations()) == 0 {
		errs = append(errs, errors.New("the handlers of the chain have no operation in common"))
	}
	return errors.Join(errs...)
}

// Handle implements [Handler].
func (c *chain) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*Response, error) {
	if err := c.Problems(); err != nil {
		return nil, err
	}
	out := Allowed()
	var whole *trace
	if WantsOrigins(ctx) {
		whole = &trace{root: &traced{raw: req.Object.Raw}}
	}
	for rest := c.links; len(rest) > 0; {
		var resp *Response
		var err error
		if run := mutatorsOf(rest); len(run) > 0 {
			resp, err = mutateAll(ctx, req, run)
			rest = rest[len(run):]
		} else {
			resp, err = rest[0].Handle(ctx, req)
			rest = rest[1:]
		}
		if err != nil {
			if resp = marked(err, req); resp == nil {
				return nil, err
			}
		}
		if resp == nil {
			return nil, errors.New("a handler of the chain returned neither a response nor an error")
		}
		resp.Warnings = slices.Concat(out.Warnings, resp.Warnings)
		resp.AuditAnnotations = mergeAudit(out.AuditAnnotations, resp.AuditAnnotations)
		if !resp.Allowed {
			return resp, nil
		}
		patch := resp.Patch
		resp.Patch = slices.Concat(out.Patch, patch)
		out = resp
		if whole != nil && len(patch) > 0 {
			if err := whole.merge(patch, resp.Origins); err != nil {
				return nil, err
			}
		}
		if len(rest) > 0 && len(patch) > 0 {
			if req, err = patched(req, patch); err != nil {
				return nil, err
			}
		}
	}
	if whole != nil {
		out.Origins = whole.origins()
	}
	return out, nil
}

// mutatorsOf returns the mutators of one type at the beginning of the handlers.
func mutatorsOf(handlers []Handler) []*mutator {
	var run []*mutator
	for _, handler := range handlers {
		m, ok := handler.(*mutator)
		if !ok || len(run) > 0 && !m.target.same(run[0].target) {
			break
		}
		run = append(run, m)
	}
	return run
}

// same tells whether two targets read the same.
func (t *target) same(other *target) bool {
	return t.elem == other.elem && t.kind == other.kind && t.exact == other.exact
}

// patched returns a copy of the request with the patch applied to its object.
func patched(req *admissionv1.AdmissionRequest, patch jsonpatch.Patch) (*admissionv1.AdmissionRequest, error) {
	raw, err := applyPatch(req.Object.Raw, patch)
	if err != nil {
		return nil, fmt.Errorf("the patch of a handler of the chain does not apply: %w", err)
	}
	changed := *req
	changed.Object.Raw = raw
	return &changed, nil
}

// applyPatch does as the API server does, with its library.
func applyPatch(raw []byte, patch jsonpatch.Patch) ([]byte, error) {
	if len(raw) == 0 {
		return nil, errors.New("there is no object")
	}
	decoded, err := jsonpatchv4.DecodePatch(patch.AppendJSON(nil))
	if err != nil {
		return nil, err
	}
	return decoded.Apply(raw)
}
