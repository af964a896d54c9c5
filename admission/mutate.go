// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/json/decode"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Defaulter changes objects. It is controller-runtime's interface of that name, so that a
// type can implement both.
type Defaulter[T apiruntime.Object] interface {
	Default(ctx context.Context, object T) error
}

// Mutate returns a handler that decodes the object of a request as T, a pointer to an API
// type or *unstructured.Unstructured, calls the function to change it, and responds with a
// patch of exactly these changes. Fields that T does not have are preserved.
//
// T is the kind of the request's object: for pods/ephemeralcontainers and pods/status a
// Pod, for deployments/scale a Scale, for pods/eviction an Eviction. An object that cannot
// be decoded as T is denied with 400 Bad Request, as is one of another kind; see [ForKind].
//
// The context is the call's: [RequestFrom], [OldFrom], [OptionsFrom], [Warn] and [Audit]
// work on it. Field errors and [Deny] deny the request; any other error, such as one of a
// client, is a fault, and so is a panic.
//
// The function must be idempotent, because the API server may call it again with its own
// result (reinvocationPolicy). It must not change metadata.name and metadata.namespace,
// which identify the request. Changes of the kind are ignored. It is not called for DELETE,
// where there is nothing to change; [Webhook.Problems] reports rules with that operation.
func Mutate[T apiruntime.Object](mutate func(ctx context.Context, object T) error, options ...HandlerOption) Handler {
	m := &mutator{target: newTarget[T](options), source: functionName(mutate)}
	if mutate == nil {
		m.err = errors.New("the function that changes objects is missing")
		return m
	}
	m.mutate = func(ctx context.Context, object apiruntime.Object) error { return mutate(ctx, object.(T)) }
	return m
}

// MutateWith is [Mutate] with the method of a [Defaulter], and [ErrorsDeny].
func MutateWith[T apiruntime.Object](defaulter Defaulter[T], options ...HandlerOption) Handler {
	if isNil(defaulter) {
		return &mutator{target: newTarget[T](options), err: errors.New("the defaulter is missing")}
	}
	m := Mutate(defaulter.Default, append([]HandlerOption{ErrorsDeny()}, options...)...).(*mutator)
	m.source = fmt.Sprintf("%T", defaulter)
	return m
}

type mutator struct {
	target *target
	mutate func(ctx context.Context, object apiruntime.Object) error
	source string // for origins
	err    error
}

// Operations implements restricted.
func (m *mutator) Operations() []admissionregistrationv1.OperationType {
	return []admissionregistrationv1.OperationType{
		admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Connect,
	}
}

// Validate implements checked.
func (m *mutator) Problems() error { return errors.Join(m.err, m.target.err) }

// Handle implements [Handler].
func (m *mutator) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*Response, error) {
	return mutateAll(ctx, req, []*mutator{m})
}

// mutateAll lets mutators of one type change an object, one after the other, and
// answers with one patch.
func mutateAll(ctx context.Context, req *admissionv1.AdmissionRequest, mutators []*mutator) (*Response, error) {
	for _, m := range mutators {
		if err := m.Problems(); err != nil {
			return nil, err
		}
	}
	if req.Operation == admissionv1.Delete {
		return Allowed(), nil
	}
	c := newCall(ctx, req)
	t := mutators[0].target
	record := decode.NewRecord()
	defer record.Release()
	object, err := t.object(req, record)
	if err != nil {
		return c.decide(t, err)
	}
	var before apiruntime.Object // unless the record tells
	switch {
	case t.untyped:
		before = object.DeepCopyObject()
	case WantsOrigins(ctx):
		if before, err = t.object(req, nil); err != nil {
			return nil, err
		}
	}
	kind := object.GetObjectKind().GroupVersionKind()
	trace := newTrace(ctx, t, req.Object.Raw, before)
	for _, m := range mutators {
		if err := m.mutate(c, object); err != nil {
			return c.decide(m.target, err)
		}
		keepKind(kind, object)
		if err := trace.step(m.source, object); err != nil {
			return nil, err
		}
	}
	if before == nil {
		if before, err = t.before(req, record, object); err != nil {
			return nil, err
		}
	}
	if before == object {
		return c.response(Allowed()), nil
	}
	patch, err := jsonpatch.DiffRaw(req.Object.Raw, before, object)
	if err != nil {
		return nil, fmt.Errorf("the changes of the handler cannot be written as a patch: %w", err)
	}
	resp := c.response(Patched(patch))
	resp.Origins = trace.origins()
	return resp, nil
}

// before returns what the object of the request was when it was read.
func (t *target) before(req *admissionv1.AdmissionRequest, record *decode.Record, object apiruntime.Object) (apiruntime.Object, error) {
	if before := record.Before(object); before != nil {
		return before.(apiruntime.Object), nil
	}
	return t.object(req, nil)
}

// CopyProblem describes a defect in the DeepCopyObject of the objects that the handler
// reads. It is for tests; patches are correct despite the defect.
func (m *mutator) CopyProblem() string {
	if m.Problems() != nil || m.target.untyped {
		return ""
	}
	return m.target.copyProblem()
}

// object decodes the object of the request, and keeps a record unless that is nil.
func (t *target) object(req *admissionv1.AdmissionRequest, record *decode.Record) (apiruntime.Object, error) {
	if err := t.checkKind(req); err != nil {
		return nil, err
	}
	return t.decodeRecorded(req.Object.Raw, "object", record)
}

// oldObject decodes the old object of the request.
func (t *target) oldObject(req *admissionv1.AdmissionRequest) (apiruntime.Object, error) {
	if err := t.checkKind(req); err != nil {
		return nil, err
	}
	return t.decode(req.OldObject.Raw, "old object")
}

// keepKind undoes a change of apiVersion and kind, for example by a function that
// makes the whole object anew: without them the API server can no longer read the
// object, which no failurePolicy covers.
func keepKind(want schema.GroupVersionKind, after apiruntime.Object) {
	if got := after.GetObjectKind(); got.GroupVersionKind() != want {
		got.SetGroupVersionKind(want)
	}
}

// functionName is the name of a function with its package, for people.
func functionName(function any) string {
	value := reflect.ValueOf(function)
	if value.Kind() != reflect.Func || value.IsNil() {
		return ""
	}
	name := runtime.FuncForPC(value.Pointer()).Name()
	name = strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], "-fm")
	return strings.TrimSuffix(name, "[...]")
}

func isNil(value any) bool {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Slice:
		return v.IsNil()
	}
	return false
}
