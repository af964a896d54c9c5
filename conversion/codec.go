// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A codec reads and writes the objects of one Go type.
type codec struct {
	elem   reflect.Type // the struct
	decode json.Options
	encode json.Options
}

func newCodec(prototype runtime.Object) (*codec, error) {
	typ := reflect.TypeOf(prototype)
	if typ == nil || typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T is no pointer to a struct", prototype)
	}
	if _, ok := prototype.(metav1.ObjectMetaAccessor); !ok {
		return nil, fmt.Errorf("%T has no metadata: embed metav1.ObjectMeta", prototype)
	}
	return &codec{elem: typ.Elem(), decode: decodeOptions(typ.Elem()), encode: encodeOptions()}, nil
}

func (c *codec) new() runtime.Object { return reflect.New(c.elem).Interface().(runtime.Object) }

// read decodes an object. Managed fields are left out: they are not a converter's to
// change, and large. Labels and annotations are read by themselves, which is faster,
// and then known when it comes to see whether a converter has changed them.
func (c *codec) read(in *Object) (object runtime.Object, came given, err error) {
	object = c.new()
	came, plain := readGiven(in)
	left := []Span{in.At.ManagedFields, in.At.Labels, in.At.Annotations}
	if !plain {
		left = left[:1] // let the decoder say what is wrong
	}
	raw, done := without(in, left...)
	defer done()
	if err := json.Unmarshal(raw, object, c.decode); err != nil {
		return nil, given{}, fmt.Errorf("cannot be decoded as %s: %s", c.elem, locate(err))
	}
	if plain {
		meta := object.(metav1.ObjectMetaAccessor).GetObjectMeta()
		if came.labels != nil {
			meta.SetLabels(mapOf(came.labels))
		}
		if came.annotations != nil {
			meta.SetAnnotations(mapOf(came.annotations))
		}
	}
	return object, came, nil
}

// buffers are for what is needed during one conversion.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// largestBuffer is what is kept for the next conversion.
const largestBuffer = 1 << 20

func release(buffer *bytes.Buffer) {
	if buffer.Cap() <= largestBuffer {
		buffers.Put(buffer)
	}
}

// without returns the bytes of the object with null in the place of parts of it. They
// are valid until done is called.
func without(in *Object, parts ...Span) (raw []byte, done func()) {
	slices.SortFunc(parts, func(a, b Span) int { return a.Start - b.Start })
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	from := 0
	for _, part := range parts {
		if !part.Empty() {
			buffer.Write(in.Raw[from:part.Start])
			buffer.WriteString("null")
			from = part.End
		}
	}
	buffer.Write(in.Raw[from:])
	return buffer.Bytes(), func() { release(buffer) }
}

// appendObject appends what became of an object: the object that a converter has
// returned, with the metadata of the one that came. It takes the metadata out of the
// object.
func (c *codec) appendObject(dst []byte, in *Object, came given, object runtime.Object, kind schema.GroupKind, version string) ([]byte, error) {
	meta := object.(metav1.ObjectMetaAccessor).GetObjectMeta()
	if err := checkIdentity(in, meta); err != nil {
		return dst, err
	}
	dst, err := appendHead(dst, kind, version)
	if err != nil {
		return dst, err
	}
	if dst, err = appendMetadata(append(dst, `,"metadata":`...), in, came, meta.GetLabels(), meta.GetAnnotations()); err != nil {
		return dst, err
	}
	if plain, ok := meta.(*metav1.ObjectMeta); ok {
		*plain = metav1.ObjectMeta{} // it would be encoded in vain
	}
	return c.appendRest(dst, object)
}

// appendRest appends what an object has beside version, kind and metadata, and ends it.
func (c *codec) appendRest(dst []byte, object any) ([]byte, error) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer release(buffer)
	buffer.Reset()
	if err := json.MarshalWrite(buffer, object, c.encode); err != nil {
		return dst, fmt.Errorf("the result of the converter cannot be encoded: %s", locate(err))
	}
	encoded := bytes.TrimSpace(buffer.Bytes())
	if len(encoded) == 0 || encoded[0] != '{' {
		return dst, errors.New("the result of the converter is encoded as something else than an object")
	}
	eachMember(encoded, func(name, member []byte) {
		switch string(name) {
		case `"apiVersion"`, `"kind"`, `"metadata"`:
		default:
			dst = append(append(dst, ','), member...)
		}
	})
	return append(dst, '}'), nil
}

// eachMember calls visit for each member of an object that an encoder has written.
func eachMember(object []byte, visit func(name, member []byte)) {
	for i := 1; i < len(object) && object[i] == '"'; {
		end := stringEnd(object, i)
		behind := valueEnd(object, end+1)
		visit(object[i:end], object[i:behind])
		i = behind + 1
	}
}

// stringEnd returns the place behind the string that begins at i.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// valueEnd returns the place behind the value that begins at i and is a member's.
func valueEnd(data []byte, i int) int {
	for depth := 0; i < len(data); {
		switch data[i] {
		case '"':
			i = stringEnd(data, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(data)
}

// decodeOptions make decoding mean what it means to Kubernetes: encoding/json with
// names that are case-sensitive and integers that stay integers. The bytes were
// checked before, see [Object].
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
			tree, err := decodeTree(dec)
			*to = tree
			return err
		})))
	}
	return json.JoinOptions(options...)
}

func encodeOptions() json.Options {
	return json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.AllowDuplicateNames(true))
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

// locate tells where an object cannot be decoded or encoded, and as what. Errors of
// decoders often repeat the value, so none of their text is taken.
func locate(err error) string {
	var semantic *json.SemanticError
	var legacy *jsonv1.UnmarshalTypeError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		return fmt.Sprintf("%s: expected %s", orWhole(string(semantic.JSONPointer)), expectation(semantic.GoType))
	case errors.As(err, &legacy):
		return fmt.Sprintf("/%s: expected %s", strings.ReplaceAll(legacy.Field, ".", "/"), expectation(legacy.Type))
	case errors.As(err, &syntax):
		return fmt.Sprintf("%s: no valid JSON", orWhole(string(syntax.JSONPointer)))
	default:
		return "a value is not what its field takes"
	}
}

func orWhole(pointer string) string {
	if pointer == "" {
		return "the whole"
	}
	return pointer
}

func expectation(typ reflect.Type) string {
	for typ != nil && typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case typ == nil:
		return "another value"
	case typ.Name() != "" && reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return "a " + typ.Name()
	}
	switch kind := typ.Kind(); {
	case kind == reflect.String:
		return "a string"
	case kind == reflect.Bool:
		return "true or false"
	case kind >= reflect.Int && kind <= reflect.Uintptr:
		return "an integer of type " + kind.String()
	case kind == reflect.Float32 || kind == reflect.Float64:
		return "a number"
	case kind == reflect.Slice && typ.Elem().Kind() == reflect.Uint8:
		return "a string in base64"
	case kind == reflect.Slice || kind == reflect.Array:
		return "a list"
	case kind == reflect.Struct || kind == reflect.Map:
		return "an object"
	}
	return "another value"
}
