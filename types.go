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
// Exactly what is there is registered, at the paths that controller-runtime
// generates: the first for CREATE and UPDATE at /mutate-<group>-<version>-<kind>, the
// others each for their operation at /validate-<group>-<version>-<kind>. An API type that
// is a [conversion.Hub] or a [conversion.Convertible] has its kind converted, once and
// between all versions that the scheme has, at /convert. A type without any of all this
// is a mistake, as is a method of one of these names with another
// signature.
func WithTypes(scheme *runtime.Scheme, implementations ...any) Option {
	return func(a *App) {
		if scheme == nil {
			a.mistake("types: the scheme is missing")
			return
		}
		a.schemes = append(a.schemes, scheme)
		for i, implementation := range implementations {
			converts, mistake := a.convertersOf(scheme, implementation)
			if mistake != nil {
				a.mistake("type %d, %T: %w", i+1, implementation, mistake)
			}
			webhooks, err := webhooksOf(scheme, implementation)
			if converts && errors.Is(err, errImplementsNothing) {
				continue
			}
			if err != nil {
				a.mistake("type %d, %T: %w", i+1, implementation, err)
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
	options := []admission.HandlerOption{admission.As(m.object), admission.ForKind(gvk)}
	if m.mutate.IsValid() {
		handler := admission.Mutate(m.call1(m.mutate), options...)
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
	mutate, create, update, remove reflect.Value
}

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
	for _, method := range []struct {
		name     string
		found    reflect.Value // by a constant: for any other name the linker keeps all methods of all types
		objects  int
		warnings bool
		to       *reflect.Value
	}{
		{"Default", value.MethodByName("Default"), 1, false, &m.mutate},
		{"ValidateCreate", value.MethodByName("ValidateCreate"), 1, true, &m.create},
		{"ValidateUpdate", value.MethodByName("ValidateUpdate"), 2, true, &m.update},
		{"ValidateDelete", value.MethodByName("ValidateDelete"), 1, true, &m.remove},
	} {
		found := method.found
		if !found.IsValid() {
			continue
		}
		object, err := prototype(value, found.Type(), method.objects, method.warnings)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("method %s: %w", method.name, err))
		case m.object != nil && reflect.TypeOf(m.object) != reflect.TypeOf(object):
			errs = append(errs, fmt.Errorf("method %s is for %T, another one for %T", method.name, object, m.object))
		default:
			m.object, *method.to = object, found
		}
	}
	if len(errs) == 0 && m.object == nil {
		errs = append(errs, errImplementsNothing)
	}
	return m, errors.Join(errs...)
}

// prototype returns an object of the type that a method is for.
func prototype(receiver reflect.Value, method reflect.Type, objects int, warnings bool) (runtime.Object, error) {
	results := []bool{method.NumOut() > 0 && method.Out(method.NumOut()-1) == errorType}
	want := "func(context.Context" + strings.Repeat(", T", objects) + ") error"
	if warnings {
		results = append(results, method.NumOut() == 2 && method.Out(0).ConvertibleTo(warningsType) && method.Out(0).Kind() == reflect.Slice)
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
		method    reflect.Value
		operation admissionregistrationv1.OperationType
	}{
		{m.create, admissionregistrationv1.Create}, {m.update, admissionregistrationv1.Update}, {m.remove, admissionregistrationv1.Delete},
	} {
		if o.method.IsValid() {
			operations = append(operations, o.operation)
		}
	}
	return operations
}

func (m methods) checks() admission.Checks[runtime.Object] {
	checks := admission.Checks[runtime.Object]{}
	if m.create.IsValid() {
		checks.Create = m.call1(m.create)
	}
	if m.update.IsValid() {
		checks.Update = func(ctx context.Context, old, object runtime.Object) error { return m.call(ctx, m.update, old, object) }
	}
	if m.remove.IsValid() {
		checks.Delete = m.call1(m.remove)
	}
	return checks
}

func (m methods) call1(method reflect.Value) func(context.Context, runtime.Object) error {
	return func(ctx context.Context, object runtime.Object) error { return m.call(ctx, method, object) }
}

// call calls a method, and passes its warnings on.
func (m methods) call(ctx context.Context, method reflect.Value, objects ...runtime.Object) error {
	in := []reflect.Value{reflect.ValueOf(ctx)}
	for _, object := range objects {
		in = append(in, reflect.ValueOf(object))
	}
	out := method.Call(in)
	if len(out) == 2 {
		admission.Warn(ctx, out[0].Convert(warningsType).Interface().([]string)...)
	}
	err, _ := out[len(out)-1].Interface().(error)
	return err
}
