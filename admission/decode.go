// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A target is a Go type that objects are decoded into, with the kind that the
// requests must be for.
type target struct {
	elem    reflect.Type // the struct
	untyped bool         // it holds a tree of maps
	layout  *layout      // nil if only the general decoder will do
	options json.Options
	kind    string                  // empty if any will do
	exact   schema.GroupVersionKind // instead of kind, if set
	err     error                   // why there is no target
}

// HandlerOption says more about what a typed handler reads.
type HandlerOption func(*handlerOptions)

type handlerOptions struct {
	prototype runtime.Object
	exact     schema.GroupVersionKind
}

// ForKind makes the handler refuse requests for other kinds. Without it the kind
// must be the name of T's Go type, as is the custom, in whatever group and
// version; *unstructured.Unstructured and *metav1.PartialObjectMetadata take all.
func ForKind(gvk schema.GroupVersionKind) HandlerOption {
	return func(o *handlerOptions) { o.exact = gvk }
}

// As makes the handler decode into the type of the prototype. It is needed, and
// only needed, where T is an interface such as runtime.Object.
func As(prototype runtime.Object) HandlerOption {
	return func(o *handlerOptions) { o.prototype = prototype }
}

func newTarget[T runtime.Object](options []HandlerOption) *target {
	var o handlerOptions
	for _, option := range options {
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
	t.exact = o.exact
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
		return &target{err: fmt.Errorf("%v is an interface: say what to decode with admission.As", typ)}
	}
	if typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct {
		return &target{err: fmt.Errorf("%v is no pointer to a struct", typ)}
	}
	t := &target{elem: typ.Elem()}
	t.untyped = typ.Implements(reflect.TypeFor[runtime.Unstructured]())
	if !t.untyped && t.elem != reflect.TypeFor[metav1.PartialObjectMetadata]() && !strings.Contains(t.elem.Name(), "[") {
		t.kind = t.elem.Name()
	}
	if !t.untyped {
		t.options = decodeOptions(t.elem)
		t.layout = newLayout(t.elem)
	}
	return t
}

// decodeOptions make decoding mean what it means to Kubernetes: encoding/json with
// names that are case-sensitive and integers that stay integers. What was checked
// when the review was read is not checked again.
func decodeOptions(typ reflect.Type) json.Options {
	options := []json.Options{
		jsonv1.DefaultOptionsV1(),
		json.MatchCaseInsensitiveNames(false),
		jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true),
		// It is about values that were there before; there are none.
		jsonv1.MergeWithLegacySemantics(false),
		// It costs another pass over the object.
		jsonv1.ReportErrorsWithLegacySemantics(false),
	}
	w := typeWalk{seen: map[reflect.Type]bool{}, options: json.JoinOptions(options...)}
	w.walk(typ)
	if w.odd {
		options = append(options, jsonv1.ReportErrorsWithLegacySemantics(true))
	}
	if w.dynamic {
		options = append(options, json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, to *any) error {
			value, err := dec.ReadValue()
			if err == nil {
				*to, err = decodeTree(value)
			}
			return err
		})))
	}
	return json.JoinOptions(options...)
}

// A typeWalk looks at all types that decoding a type may lead to.
type typeWalk struct {
	seen    map[reflect.Type]bool
	options json.Options
	dynamic bool // some hold an any
	odd     bool // some have tags that encoding/json puts up with and its successor does not
}

func (w *typeWalk) walk(typ reflect.Type) {
	if w.seen[typ] {
		return
	}
	w.seen[typ] = true
	if typ.Kind() != reflect.Interface && reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return
	}
	switch typ.Kind() {
	case reflect.Interface:
		w.dynamic = true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		w.walk(typ.Elem())
	case reflect.Struct:
		if json.Unmarshal([]byte("{}"), reflect.New(typ).Interface(), w.options) != nil {
			w.odd = true
		}
		for field := range typ.Fields() {
			if field.IsExported() || field.Anonymous {
				w.walk(field.Type)
			}
		}
	}
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
	return t.decodeMarked(raw, what, nil)
}

// decodeMarked is decode that takes an imprint too, which is opaque if it could not.
func (t *target) decodeMarked(raw []byte, what string, m *imprint) (runtime.Object, error) {
	if len(raw) == 0 {
		return nil, &readError{fmt.Sprintf("the request has no %s; a %s is expected", what, t.name())}
	}
	pointer := reflect.New(t.elem)
	value := pointer.Interface()
	if t.layout != nil && t.layout.read(raw, pointer.UnsafePointer(), t.options, m) {
		return value.(runtime.Object), nil
	}
	if m != nil {
		m.opaque = true
	}
	if t.untyped {
		reader := jsonpatch.NewReader(raw)
		if reader.Kind() != '{' {
			return nil, &readError{fmt.Sprintf("the %s of the request is no JSON object", what)}
		}
		tree, err := decodeTree(raw)
		if err != nil {
			return nil, &readError{fmt.Sprintf("the %s of the request cannot be decoded: %s", what, err)}
		}
		value.(runtime.Unstructured).SetUnstructuredContent(tree.(map[string]any))
		return value.(runtime.Object), nil
	}
	if t.layout != nil { // which may have filled a part of it
		pointer.Elem().SetZero()
	}
	if err := json.Unmarshal(raw, value, t.options); err != nil {
		return nil, &readError{fmt.Sprintf("the %s of the request cannot be decoded as %s: %s", what, t.name(), locate(err))}
	}
	return value.(runtime.Object), nil
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

// locate tells where an object cannot be decoded, and what was expected there.
// Errors of decoders often repeat the value, so none of their text is taken.
func locate(err error) string {
	var semantic *json.SemanticError
	var legacy *jsonv1.UnmarshalTypeError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		where := string(semantic.JSONPointer)
		if where == "" {
			where = "the whole"
		}
		return fmt.Sprintf("%s, at byte %d: %s", where, semantic.ByteOffset, expectation(semantic.GoType, semantic.JSONKind))
	case errors.As(err, &legacy):
		return fmt.Sprintf("%s, at byte %d: %s", "/"+strings.ReplaceAll(legacy.Field, ".", "/"), legacy.Offset, expectation(legacy.Type, 0))
	case errors.As(err, &syntax):
		return fmt.Sprintf("%s, at byte %d: no valid JSON", syntax.JSONPointer, syntax.ByteOffset)
	default:
		return "a value is not what its field takes"
	}
}

func expectation(typ reflect.Type, found jsontext.Kind) string {
	expected := "another value"
	if typ != nil {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch kind := typ.Kind(); {
		case reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()):
			expected = "a " + typ.Name()
		case kind == reflect.String:
			expected = "a string"
		case kind == reflect.Bool:
			expected = "true or false"
		case kind >= reflect.Int && kind <= reflect.Uintptr:
			expected = "an integer of type " + typ.Kind().String()
		case kind == reflect.Float32 || kind == reflect.Float64:
			expected = "a number"
		case kind == reflect.Slice && typ.Elem().Kind() == reflect.Uint8:
			expected = "a string in base64"
		case kind == reflect.Slice || kind == reflect.Array:
			expected = "a list"
		case kind == reflect.Struct || kind == reflect.Map:
			expected = "an object"
		}
	}
	switch found {
	case '{':
		return "expected " + expected + ", found an object"
	case '[':
		return "expected " + expected + ", found a list"
	case '"':
		return "expected " + expected + ", found a string"
	case '0':
		return "expected " + expected + ", found a number"
	case 't', 'f':
		return "expected " + expected + ", found a boolean"
	default:
		return "expected " + expected
	}
}

// decodeTree reads JSON as Kubernetes' unstructured objects hold it: integers that
// fit are int64, other numbers float64.
func decodeTree(raw []byte) (any, error) {
	d := treeDecoder{Reader: jsonpatch.NewReader(raw)}
	value := d.value()
	return value, d.err
}

type treeDecoder struct {
	jsonpatch.Reader
	err error
}

func (d *treeDecoder) value() any {
	switch d.Kind() {
	case '{':
		object := map[string]any{}
		d.Object(func(name []byte) {
			key := string(name)
			object[key] = d.value()
		})
		return object
	case '[':
		list := []any{}
		d.Array(func(int) { list = append(list, d.value()) })
		return list
	case '"':
		text, _ := d.String()
		return string(text)
	case 't':
		d.Skip()
		return true
	case 'f':
		d.Skip()
		return false
	case '0':
		return d.number()
	default:
		d.Skip()
		return nil
	}
}

func (d *treeDecoder) number() any {
	at := d.Offset()
	text := string(d.Value())
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("at byte %d: the number is out of range", at)
	}
	return f
}
