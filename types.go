// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
)

// WithTypes adds the webhooks of API types: each implementation is an API type that
// defaults or validates itself, or a defaulter or validator of one, as kubebuilder
// scaffolds them, or a [Type] around either. The API types must be in the scheme.
//
// Looked for are methods with controller-runtime's signatures, T being the API type
// (or runtime.Object, for a type that implements them itself) and W any []string:
//
//	Default(ctx context.Context, object T) error
//	ValidateCreate(ctx context.Context, object T) (W, error)
//	ValidateUpdate(ctx context.Context, old, object T) (W, error)
//	ValidateDelete(ctx context.Context, object T) (W, error)
//
// So are the older ones, with which an API type defaults or validates itself
// (webhook.Defaulter and webhook.Validator, which controller-runtime had until v0.19):
//
//	Default()
//	ValidateCreate() error                   or (W, error)
//	ValidateUpdate(old runtime.Object) error or (W, error)
//	ValidateDelete() error                   or (W, error)
//
// Exactly what is there is registered, at the paths that controller-runtime
// generates: the first for CREATE and UPDATE at /mutate-<group>-<version>-<kind>, the
// others each for their operation at /validate-<group>-<version>-<kind>. An API type that
// is a [conversion.Hub] or a [conversion.Convertible] has its kind converted, once and
// between all versions that the scheme has, at /convert. A type with none of these is an
// error, and so is a method of one of these names with another signature.
func WithTypes(scheme *runtime.Scheme, implementations ...any) Option {
	return func(a *App) {
		if scheme == nil {
			a.problem("types: the scheme is missing")
			return
		}
		a.schemes = append(a.schemes, scheme)
		for i, implementation := range implementations {
			converts, err := a.convertersOf(scheme, implementation)
			if err != nil {
				a.problem("type %d, %T: %w", i+1, implementation, err)
			}
			webhooks, err := webhooksOf(scheme, implementation)
			if converts && errors.Is(err, errImplementsNothing) {
				continue
			}
			if err != nil {
				a.problem("type %d, %T: %w", i+1, implementation, err)
			}
			a.webhooks = append(a.webhooks, webhooks...)
		}
	}
}

// Type says more about an implementation for [WithTypes].
type Type struct {
	Implementation any
	// Resource is the plural of the kind, if it is not the one that is guessed
	// ("crontabs" of CronTab, "policies" of Policy).
	Resource string
	// Options are for the webhooks of the type.
	Options []admission.WebhookOption
}

// webhooksOf finds out what a value implements.
func webhooksOf(scheme *runtime.Scheme, implementation any) ([]admission.Webhook, error) {
	t, ok := implementation.(Type)
	if !ok {
		t = Type{Implementation: implementation}
	}
	value := reflect.ValueOf(t.Implementation)
	if !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil, errors.New("is nil")
	}
	m, err := methodsOf(value)
	if err != nil {
		return nil, err
	}
	gvk, err := kindOf(scheme, m.object)
	if err != nil {
		return nil, err
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	if t.Resource != "" {
		resource.Resource = t.Resource
	}

	var webhooks []admission.Webhook
	options := []admission.HandlerOption{admission.As(m.object), admission.ForKind(gvk), admission.ErrorsDeny()}
	if m.mutate != nil {
		handler := admission.Mutate(m.mutate.ofOne(), options...)
		webhooks = append(webhooks, admission.Mutating(webhookName("default", gvk), admission.Rules(resource),
			admission.Named(fmt.Sprintf("%T", t.Implementation), handler), t.options(generatedPath("mutate", gvk))...))
	}
	if operations := m.operations(); len(operations) > 0 {
		handler := admission.ValidateEach(m.checks(), options...)
		webhooks = append(webhooks, admission.Validating(webhookName("validate", gvk), admission.Rules(resource, operations...),
			handler, t.options(generatedPath("validate", gvk))...))
	}
	return webhooks, nil
}

func (t Type) options(path string) []admission.WebhookOption {
	return append([]admission.WebhookOption{admission.AtPath(path)}, t.Options...)
}

// generatedPath is the path that controller-runtime generates (pkg/builder), where
// the core group gives two dashes.
func generatedPath(what string, gvk schema.GroupVersionKind) string {
	return "/" + what + "-" + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
}

func webhookName(what string, gvk schema.GroupVersionKind) string {
	group := gvk.Group
	if group == "" {
		group = "core"
	}
	return what + "." + gvk.Version + "." + strings.ToLower(gvk.Kind) + "." + group
}

// kindOf is the kind of a type, which must be in the scheme once.
func kindOf(scheme *runtime.Scheme, object runtime.Object) (schema.GroupVersionKind, error) {
	kinds, unversioned, err := scheme.ObjectKinds(object)
	switch {
	case runtime.IsNotRegisteredError(err):
		return schema.GroupVersionKind{}, fmt.Errorf("%T is not in the scheme: add it with its package's AddToScheme", object)
	case err != nil:
		return schema.GroupVersionKind{}, err
	case unversioned:
		return schema.GroupVersionKind{}, fmt.Errorf("%T has no version", object)
	case len(kinds) > 1:
		return schema.GroupVersionKind{}, fmt.Errorf("%T stands for several kinds (%v): define its webhooks with admission.Mutating and Validating", object, kinds)
	}
	return kinds[0], nil
}

// methods are what a value implements, for objects of one type.
type methods struct {
	object                         runtime.Object // a prototype
	mutate, create, update, remove method         // nil if it does not have it
}

// A method is called with the objects of a request: the old one first, if there is one.
type method func(ctx context.Context, objects ...runtime.Object) error

var (
	contextType  = reflect.TypeFor[context.Context]()
	objectType   = reflect.TypeFor[runtime.Object]()
	errorType    = reflect.TypeFor[error]()
	warningsType = reflect.TypeFor[[]string]()
)

var errImplementsNothing = errors.New("implements none of Default, ValidateCreate, ValidateUpdate and ValidateDelete with controller-runtime's signatures, and is neither a conversion.Hub nor a conversion.Convertible")

func methodsOf(value reflect.Value) (methods, error) {
	var m methods
	var errs []error
	for _, wanted := range []struct {
		name string
		// by finds the method by a constant: for any other name the linker keeps all methods
		// of all types.
		by       func(reflect.Value) reflect.Value
		objects  int
		warnings bool
		to       *method
	}{
		{"Default", func(v reflect.Value) reflect.Value { return v.MethodByName("Default") }, 1, false, &m.mutate},
		{"ValidateCreate", func(v reflect.Value) reflect.Value { return v.MethodByName("ValidateCreate") }, 1, true, &m.create},
		{"ValidateUpdate", func(v reflect.Value) reflect.Value { return v.MethodByName("ValidateUpdate") }, 2, true, &m.update},
		{"ValidateDelete", func(v reflect.Value) reflect.Value { return v.MethodByName("ValidateDelete") }, 1, true, &m.remove},
	} {
		found := wanted.by(value)
		if !found.IsValid() {
			continue
		}
		object, call := value.Interface(), method(nil)
		self, ok := object.(runtime.Object)
		if ok && value.Kind() == reflect.Pointer && ofItself(found.Type(), wanted.objects, wanted.warnings) {
			call = callItself(wanted.by)
		} else {
			var err error
			if self, err = prototype(value, found.Type(), wanted.objects, wanted.warnings); err != nil {
				errs = append(errs, fmt.Errorf("method %s: %w", wanted.name, err))
				continue
			}
			call = callWith(found)
		}
		if m.object != nil && reflect.TypeOf(m.object) != reflect.TypeOf(self) {
			errs = append(errs, fmt.Errorf("method %s is for %T, another one for %T", wanted.name, self, m.object))
			continue
		}
		m.object, *wanted.to = self, call
	}
	if len(errs) == 0 && m.object == nil {
		errs = append(errs, errImplementsNothing)
	}
	return m, errors.Join(errs...)
}

// ofItself tells whether a method is one with which an API type defaults or validates
// itself, as webhook.Defaulter and webhook.Validator of controller-runtime had them before
// v0.20: the object is the receiver, and Default has no result.
func ofItself(method reflect.Type, objects int, warnings bool) bool {
	if method.IsVariadic() || method.NumIn() != objects-1 || objects == 2 && method.In(0) != objectType {
		return false
	}
	switch results := method.NumOut(); {
	case !warnings:
		return results == 0
	case results == 1:
		return method.Out(0) == errorType
	default:
		return results == 2 && isWarnings(method.Out(0)) && method.Out(1) == errorType
	}
}

func isWarnings(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.ConvertibleTo(warningsType)
}

// prototype returns an object of the type that a method is for.
func prototype(receiver reflect.Value, method reflect.Type, objects int, warnings bool) (runtime.Object, error) {
	results := []bool{method.NumOut() > 0 && method.Out(method.NumOut()-1) == errorType}
	want := "func(context.Context" + strings.Repeat(", T", objects) + ") error"
	if warnings {
		results = append(results, method.NumOut() == 2 && isWarnings(method.Out(0)))
		want = "func(context.Context" + strings.Repeat(", T", objects) + ") (warnings []string, err error)"
	} else {
		results = append(results, method.NumOut() == 1)
	}
	fits := !method.IsVariadic() && method.NumIn() == 1+objects && method.In(0) == contextType && !slices.Contains(results, false)
	for i := 1; fits && i < method.NumIn(); i++ {
		fits = method.In(i) == method.In(1) && method.In(i).Implements(objectType)
	}
	if !fits {
		return nil, fmt.Errorf("it is a %v; make it a %s", method, want)
	}
	typ := method.In(1)
	if typ.Kind() == reflect.Interface {
		object, ok := receiver.Interface().(runtime.Object)
		if !ok {
			return nil, fmt.Errorf("it takes any object: let it take a pointer to the API type instead of %v", typ)
		}
		return object, nil
	}
	if typ.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("it takes %v, which is no pointer", typ)
	}
	return reflect.New(typ.Elem()).Interface().(runtime.Object), nil
}

func (m methods) operations() []admissionregistrationv1.OperationType {
	var operations []admissionregistrationv1.OperationType
	for _, o := range []struct {
		method    method
		operation admissionregistrationv1.OperationType
	}{
		{m.create, admissionregistrationv1.Create}, {m.update, admissionregistrationv1.Update}, {m.remove, admissionregistrationv1.Delete},
	} {
		if o.method != nil {
			operations = append(operations, o.operation)
		}
	}
	return operations
}

func (m methods) checks() admission.Checks[runtime.Object] {
	checks := admission.Checks[runtime.Object]{Create: m.create.ofOne(), Delete: m.remove.ofOne()}
	if m.update != nil {
		checks.Update = func(ctx context.Context, old, object runtime.Object) error { return m.update(ctx, old, object) }
	}
	return checks
}

// ofOne is a method for one object; nil if there is none.
func (m method) ofOne() func(context.Context, runtime.Object) error {
	if m == nil {
		return nil
	}
	return func(ctx context.Context, object runtime.Object) error { return m(ctx, object) }
}

// callWith calls a method of a defaulter or validator.
func callWith(found reflect.Value) method {
	return func(ctx context.Context, objects ...runtime.Object) error {
		in := []reflect.Value{reflect.ValueOf(ctx)}
		for _, object := range objects {
			in = append(in, reflect.ValueOf(object))
		}
		return results(ctx, found.Call(in))
	}
}

// callItself calls a method of the object, with the old one if there is one.
func callItself(by func(reflect.Value) reflect.Value) method {
	return func(ctx context.Context, objects ...runtime.Object) error {
		last := len(objects) - 1
		var in []reflect.Value
		for _, old := range objects[:last] {
			in = append(in, reflect.ValueOf(old))
		}
		return results(ctx, by(reflect.ValueOf(objects[last])).Call(in))
	}
}

// results passes warnings on, and returns the error.
func results(ctx context.Context, out []reflect.Value) error {
	if len(out) == 0 {
		return nil
	}
	if len(out) == 2 {
		admission.Warn(ctx, out[0].Convert(warningsType).Interface().([]string)...)
	}
	err, _ := out[len(out)-1].Interface().(error)
	return err
}
