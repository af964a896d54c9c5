// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Validator validates objects. It is controller-runtime's interface of that name, so that a
// type can implement both; W is that package's type for warnings, or []string.
type Validator[T runtime.Object, W ~[]string] interface {
	ValidateCreate(ctx context.Context, object T) (W, error)
	ValidateUpdate(ctx context.Context, old, object T) (W, error)
	ValidateDelete(ctx context.Context, object T) (W, error)
}

// Checks are the functions of a validating handler, at least one. An operation without a
// function is not supported: it is a fault if the API server sends it, and [Webhook]'s
// Validate rejects rules with it.
type Checks[T runtime.Object] struct {
	// Create gets the object to create. For sub-resources such as pods/binding and
	// pods/eviction that is the posted object.
	Create func(ctx context.Context, object T) error
	// Update gets the old and the new object.
	Update func(ctx context.Context, old, object T) error
	// Delete gets the object to delete. For a collection it is called once for each object.
	Delete func(ctx context.Context, object T) error
	// Connect gets the options, for example *corev1.PodAttachOptions for
	// pods/attach. The request has name and namespace of the parent, which itself
	// is not sent.
	Connect func(ctx context.Context, options T) error
}

// Validate returns a handler that decodes the object of a request as T and admits it unless
// the function returns an error, which denies or is a fault. The function is called for
// CREATE and UPDATE; see [ValidateEach] for more. T, the context and errors are as for
// [Mutate].
func Validate[T runtime.Object](check func(ctx context.Context, object T) error, options ...HandlerOption) Handler {
	v := newValidator[T](options)
	if check == nil {
		v.err = errors.New("the function that checks objects is missing")
		return v
	}
	v.create = func(c *call) error {
		object, err := v.target.object(c.req, nil)
		if err != nil {
			return err
		}
		defer v.compare(c, object)
		return check(c, object.(T))
	}
	v.update = v.create // the old object is decoded if somebody asks for it
	return v
}

// ValidateEach is [Validate] with a function for each operation.
func ValidateEach[T runtime.Object](checks Checks[T], options ...HandlerOption) Handler {
	v := newValidator[T](options)
	object := func(check func(context.Context, T) error) func(c *call) error {
		if check == nil {
			return nil
		}
		return func(c *call) error {
			object, err := v.target.object(c.req, nil)
			if err != nil {
				return err
			}
			defer v.compare(c, object)
			return check(c, object.(T))
		}
	}
	v.create, v.connect = object(checks.Create), object(checks.Connect)
	if checks.Update != nil {
		v.update = func(c *call) error {
			old, err := v.old(c)
			if err != nil {
				return err
			}
			object, err := v.target.object(c.req, nil)
			if err != nil {
				return err
			}
			defer v.compare(c, object)
			return checks.Update(c, old.(T), object.(T))
		}
	}
	if checks.Delete != nil {
		v.remove = func(c *call) error {
			old, err := v.old(c)
			if err != nil {
				return err
			}
			return checks.Delete(c, old.(T))
		}
	}
	if len(v.Operations()) == 0 {
		v.err = errors.New("there is no function that checks objects")
	}
	return v
}

// ValidateWith is [ValidateEach] with the methods of a [Validator], and [ErrorsDeny].
func ValidateWith[T runtime.Object, W ~[]string](validator Validator[T, W], options ...HandlerOption) Handler {
	if isNil(validator) {
		v := newValidator[T](options)
		v.err = errors.New("the validator is missing")
		return v
	}
	return ValidateEach(Checks[T]{
		Create: func(ctx context.Context, object T) error {
			return warned[W](ctx)(validator.ValidateCreate(ctx, object))
		},
		Update: func(ctx context.Context, old, object T) error {
			return warned[W](ctx)(validator.ValidateUpdate(ctx, old, object))
		},
		Delete: func(ctx context.Context, object T) error {
			return warned[W](ctx)(validator.ValidateDelete(ctx, object))
		},
	}, append([]HandlerOption{ErrorsDeny()}, options...)...)
}

// warned passes the warnings on and returns the error.
func warned[W ~[]string](ctx context.Context) func(warnings W, err error) error {
	return func(warnings W, err error) error {
		Warn(ctx, warnings...)
		return err
	}
}

type validator struct {
	target                          *target
	create, update, remove, connect func(c *call) error
	err                             error
	compared                        rate.Sometimes
}

func newValidator[T runtime.Object](options []HandlerOption) *validator {
	return &validator{target: newTarget[T](options), compared: rate.Sometimes{First: 10, Interval: time.Second}}
}

// compare logs that a check has changed the object. It looks at the first ten calls and at
// one a second, because it decodes the object once more.
func (v *validator) compare(c *call, object runtime.Object) {
	v.compared.Do(func() {
		before, err := v.target.object(c.req, nil)
		if err != nil {
			return
		}
		if patch, err := jsonpatch.DiffRaw(c.req.Object.Raw, before, object); err == nil && len(patch) > 0 {
			Logger(c).WarnContext(c, "the validator changed its object: the change is lost; default the object in a mutating webhook, or change a copy")
		}
	})
}

// old decodes the old object, once for the check and for [OldFrom].
func (v *validator) old(c *call) (runtime.Object, error) {
	old, err := v.target.oldObject(c.req)
	if err == nil {
		c.old = old
	}
	return old, err
}

func (v *validator) check(operation admissionv1.Operation) func(c *call) error {
	switch operation {
	case admissionv1.Create:
		return v.create
	case admissionv1.Update:
		return v.update
	case admissionv1.Delete:
		return v.remove
	case admissionv1.Connect:
		return v.connect
	}
	return nil
}

// Operations implements restricted.
func (v *validator) Operations() []admissionregistrationv1.OperationType {
	return slices.DeleteFunc(slices.Clone(operations), func(o admissionregistrationv1.OperationType) bool {
		return v.check(admissionv1.Operation(o)) == nil
	})
}

// Validate implements checked.
func (v *validator) Problems() error { return errors.Join(v.err, v.target.err) }

// Handle implements [Handler].
func (v *validator) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*Response, error) {
	if err := v.Problems(); err != nil {
		return nil, err
	}
	check := v.check(req.Operation)
	if check == nil {
		return nil, fmt.Errorf("the webhook has no function for %s, only for %s: correct the rules of its configuration",
			req.Operation, operationNames(v.Operations()))
	}
	c := newCall(ctx, req)
	if err := check(c); err != nil {
		return c.decide(v.target, err)
	}
	return c.response(Allowed()), nil
}

func operationNames(operations []admissionregistrationv1.OperationType) string {
	names := make([]string, len(operations))
	for i, operation := range operations {
		names[i] = string(operation)
	}
	return strings.Join(names, ", ")
}
