// SPDX-License-Identifier: Apache-2.0

// Package typed finds the methods by which API types default and validate themselves, and
// defaulters and validators do it for one.
package typed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
)

// Methods are what a value implements, for objects of one type.
type Methods struct {
	Object                 runtime.Object // a prototype
	Mutate                 Method         // nil if it does not have it, as the others
	create, update, remove Method
}

// A Method is called with the objects of a request: the old one first, if there is one.
type Method func(ctx context.Context, objects ...runtime.Object) error

var (
	contextType  = reflect.TypeFor[context.Context]()
	objectType   = reflect.TypeFor[runtime.Object]()
	errorType    = reflect.TypeFor[error]()
	warningsType = reflect.TypeFor[[]string]()
)

// ErrNone is that of a value without such methods.
var ErrNone = errors.New("implements none of Default, ValidateCreate, ValidateUpdate and ValidateDelete with controller-runtime's signatures, and is neither a conversion.Hub nor a conversion.Convertible")

// MethodsOf returns the methods of a value. The error lists those of another signature; it is
// [ErrNone] if there is none.
func MethodsOf(value reflect.Value) (Methods, error) {
	var m Methods
	var errs []error
	for _, wanted := range []struct {
		name string
		// by finds the method by a constant: for any other name the linker keeps all methods
		// of all types.
		by       func(reflect.Value) reflect.Value
		objects  int
		warnings bool
		to       *Method
	}{
		{"Default", func(v reflect.Value) reflect.Value { return v.MethodByName("Default") }, 1, false, &m.Mutate},
		{"ValidateCreate", func(v reflect.Value) reflect.Value { return v.MethodByName("ValidateCreate") }, 1, true, &m.create},
		{"ValidateUpdate", func(v reflect.Value) reflect.Value { return v.MethodByName("ValidateUpdate") }, 2, true, &m.update},
		{"ValidateDelete", func(v reflect.Value) reflect.Value { return v.MethodByName("ValidateDelete") }, 1, true, &m.remove},
	} {
		found := wanted.by(value)
		if !found.IsValid() {
			continue
		}
		object, call := value.Interface(), Method(nil)
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
		if m.Object != nil && reflect.TypeOf(m.Object) != reflect.TypeOf(self) {
			errs = append(errs, fmt.Errorf("method %s is for %T, another one for %T", wanted.name, self, m.Object))
			continue
		}
		m.Object, *wanted.to = self, call
	}
	if len(errs) == 0 && m.Object == nil {
		errs = append(errs, ErrNone)
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
		return nil, fmt.Errorf("it takes %v, which is not a pointer", typ)
	}
	return reflect.New(typ.Elem()).Interface().(runtime.Object), nil
}

// Operations are those that are validated.
func (m Methods) Operations() []admissionregistrationv1.OperationType {
	var operations []admissionregistrationv1.OperationType
	for _, o := range []struct {
		method    Method
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

// Checks are the validating methods.
func (m Methods) Checks() admission.Checks[runtime.Object] {
	checks := admission.Checks[runtime.Object]{Create: m.create.OfOne(), Delete: m.remove.OfOne()}
	if m.update != nil {
		checks.Update = func(ctx context.Context, old, object runtime.Object) error { return m.update(ctx, old, object) }
	}
	return checks
}

// OfOne is a method for one object; nil if there is none.
func (m Method) OfOne() func(context.Context, runtime.Object) error {
	if m == nil {
		return nil
	}
	return func(ctx context.Context, object runtime.Object) error { return m(ctx, object) }
}

// callWith calls a method of a defaulter or validator.
func callWith(found reflect.Value) Method {
	return func(ctx context.Context, objects ...runtime.Object) error {
		in := []reflect.Value{reflect.ValueOf(ctx)}
		for _, object := range objects {
			in = append(in, reflect.ValueOf(object))
		}
		return results(ctx, found.Call(in))
	}
}

// callItself calls a method of the object, with the old one if there is one.
func callItself(by func(reflect.Value) reflect.Value) Method {
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
