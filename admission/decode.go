// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/json/decode"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A target is a Go type that objects are decoded into, with the kind that the
// requests must be for.
type target struct {
	elem    reflect.Type            // the struct
	untyped bool                    // it holds a tree of maps
	typ     *decode.Type            // nil if it is
	kind    string                  // empty if any will do
	exact   schema.GroupVersionKind // instead of kind, if set
	err     error                   // why there is no target

	errorsDeny bool // see [ErrorsDeny]
	// copyProblem tells why objects cannot be compared with copies of them; see
	// [decode.CopyProblem]. It is asked once.
	copyProblem func() string
}

// HandlerOption configures what a typed handler reads, and what its errors mean.
type HandlerOption func(*handlerOptions)

type handlerOptions struct {
	prototype runtime.Object
	exact     schema.GroupVersionKind

	errorsDeny bool
}

// ForKind makes the handler reject requests for other kinds. By default the kind must be
// the name of T's Go type, in any group and version; *unstructured.Unstructured and
// *metav1.PartialObjectMetadata accept all kinds.
func ForKind(gvk schema.GroupVersionKind) HandlerOption {
	return func(o *handlerOptions) { o.exact = gvk }
}

// As makes the handler decode into the type of the prototype. It is required if T is an
// interface such as runtime.Object, and only then.
func As(prototype runtime.Object) HandlerOption {
	return func(o *handlerOptions) { o.prototype = prototype }
}

func newTarget[T runtime.Object](options []HandlerOption) *target {
	var o handlerOptions
	for i, option := range options {
		if option == nil {
			return &target{err: nilOption(i)}
		}
		option(&o)
	}
	typ := reflect.TypeFor[T]()
	if o.prototype != nil {
		if _, ok := o.prototype.(T); !ok {
			return &target{err: fmt.Errorf("a %T cannot be passed to a function that takes %v", o.prototype, typ)}
		}
		typ = reflect.TypeOf(o.prototype)
	}
	t := *targetFor(typ)
	t.exact, t.errorsDeny = o.exact, o.errorsDeny
	return &t
}

// targets are what was found out about types: it takes a while, and [OldFrom]
// asks for each call.
var targets sync.Map // of *target, by reflect.Type

func targetOf[T runtime.Object]() *target { return targetFor(reflect.TypeFor[T]()) }

func targetFor(typ reflect.Type) *target {
	if t, ok := targets.Load(typ); ok {
		return t.(*target)
	}
	t, _ := targets.LoadOrStore(typ, describe(typ))
	return t.(*target)
}

func describe(typ reflect.Type) *target {
	if typ.Kind() == reflect.Interface {
		return &target{err: fmt.Errorf("%v is an interface: declare the type to decode with admission.As", typ)}
	}
	if typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct {
		return &target{err: fmt.Errorf("%v is not a pointer to a struct", typ)}
	}
	t := &target{elem: typ.Elem()}
	t.untyped = typ.Implements(reflect.TypeFor[runtime.Unstructured]())
	if !t.untyped && t.elem != reflect.TypeFor[metav1.PartialObjectMetadata]() && !strings.Contains(t.elem.Name(), "[") {
		t.kind = t.elem.Name()
	}
	if !t.untyped {
		t.typ = decode.For(t.elem)
		t.copyProblem = sync.OnceValue(func() string { return decode.CopyProblem(reflect.New(t.elem).Interface().(runtime.Object)) })
	}
	return t
}

// checkKind refuses a request for another kind.
func (t *target) checkKind(req *admissionv1.AdmissionRequest) error {
	switch got := schema.GroupVersionKind(req.Kind); {
	case got.Kind == "":
	case !t.exact.Empty() && got != t.exact:
		return &readError{fmt.Sprintf("the request is for kind %s, this webhook reads %s: correct the rules of its configuration", kindName(got), kindName(t.exact))}
	case t.exact.Empty() && t.kind != "" && got.Kind != t.kind:
		return &readError{fmt.Sprintf("the request is for kind %s, this webhook reads %s: correct the rules of its configuration", kindName(got), t.kind)}
	}
	return nil
}

func kindName(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}

// decode reads a part of the request; what names it. The error is a [readError].
func (t *target) decode(raw []byte, what string) (runtime.Object, error) {
	return t.decodeRecorded(raw, what, nil)
}

// decodeRecorded is decode that keeps a record too, unless that is nil.
func (t *target) decodeRecorded(raw []byte, what string, record *decode.Record) (runtime.Object, error) {
	if len(raw) == 0 {
		return nil, &readError{fmt.Sprintf("the request has no %s; a %s is expected", what, t.name())}
	}
	if !t.untyped {
		value, err := t.typ.New(raw, record)
		if err != nil {
			return nil, &readError{fmt.Sprintf("the %s of the request cannot be decoded as %s: %s", what, t.name(), locate(err))}
		}
		return value.(runtime.Object), nil
	}
	reader := rawjson.NewReader(raw)
	if reader.Kind() != '{' {
		return nil, &readError{fmt.Sprintf("the %s of the request is not a JSON object", what)}
	}
	tree, err := decode.Tree(raw)
	if err != nil {
		return nil, &readError{fmt.Sprintf("the %s of the request cannot be decoded: %s", what, err)}
	}
	value := reflect.New(t.elem).Interface()
	value.(runtime.Unstructured).SetUnstructuredContent(tree.(map[string]any))
	return value.(runtime.Object), nil
}

// locate tells where an object cannot be decoded, and what was expected there.
func locate(err error) string {
	where, offset, problem := decode.Describe(err)
	if where == "" {
		return problem
	}
	return fmt.Sprintf("%s, at byte %d: %s", where, offset, problem)
}

func (t *target) name() string {
	if !t.exact.Empty() {
		return kindName(t.exact)
	}
	return t.elem.String()
}

// A readError is about what the API server sent. It is a decision, 400 Bad
// Request, also if a handler passes it on.
type readError struct{ message string }

func (e *readError) Error() string { return e.message }

// Status implements apierrors.APIStatus.
func (e *readError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: e.message,
	}
}
