// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/json/decode"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/json/rawobject"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A codec reads and writes the objects of one Go type.
type codec struct {
	elem   reflect.Type // the struct
	decode *decode.Type
}

func newCodec(prototype runtime.Object) (*codec, error) {
	typ := reflect.TypeOf(prototype)
	if typ == nil || typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T is not a pointer to a struct", prototype)
	}
	if _, ok := prototype.(metav1.ObjectMetaAccessor); !ok {
		return nil, fmt.Errorf("%T has no metadata: embed metav1.ObjectMeta", prototype)
	}
	return &codec{elem: typ.Elem(), decode: decode.For(typ.Elem())}, nil
}

func (c *codec) new() runtime.Object { return reflect.New(c.elem).Interface().(runtime.Object) }

// read decodes an object without managed fields: they are large, and a converter must not
// change them. It reads labels and annotations separately. That is faster, and the originals
// show whether the converter changed them.
func (c *codec) read(in *rawobject.Object) (object runtime.Object, original given, err error) {
	original, plain := readGiven(in)
	left := []rawobject.Span{in.At.ManagedFields, in.At.Labels, in.At.Annotations}
	if !plain {
		left = left[:1] // the decoder reports the problem
	}
	value, err := c.decode.New(without(in, left...), nil)
	if err != nil {
		return nil, given{}, fmt.Errorf("cannot be decoded as %s: %s", c.elem, locate(err))
	}
	object = value.(runtime.Object)
	if plain {
		meta := object.(metav1.ObjectMetaAccessor).GetObjectMeta()
		if original.labels != nil {
			meta.SetLabels(mapOf(original.labels))
		}
		if original.annotations != nil {
			meta.SetAnnotations(mapOf(original.annotations))
		}
	}
	return object, original, nil
}

// buffers are the buffers of one conversion.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxBuffer is the largest buffer that is kept for reuse.
const maxBuffer = 1 << 20

func release(buffer *[]byte, used []byte) {
	if cap(used) <= maxBuffer {
		*buffer = used
		buffers.Put(buffer)
	}
}

// without returns the object's bytes with the given parts replaced by null.
func without(in *rawobject.Object, parts ...rawobject.Span) []byte {
	parts = slices.DeleteFunc(parts, rawobject.Span.Empty)
	if len(parts) == 0 {
		return in.Raw
	}
	slices.SortFunc(parts, func(a, b rawobject.Span) int { return a.Start - b.Start })
	size := len(in.Raw)
	for _, part := range parts {
		size += len("null") - (part.End - part.Start)
	}
	out := make([]byte, 0, size)
	from := 0
	for _, part := range parts {
		out = append(append(out, in.Raw[from:part.Start]...), "null"...)
		from = part.End
	}
	return append(out, in.Raw[from:]...)
}

// appendObject appends the result of a conversion: the object that the converter returned, with
// the metadata of the original. It clears the metadata of object.
func (c *codec) appendObject(dst []byte, in *rawobject.Object, original given, object runtime.Object, kind schema.GroupKind, version string) ([]byte, error) {
	meta := object.(metav1.ObjectMetaAccessor).GetObjectMeta()
	if err := checkIdentity(in, meta); err != nil {
		return dst, err
	}
	dst, err := appendHead(dst, kind, version)
	if err != nil {
		return dst, err
	}
	if dst, err = appendMetadata(append(dst, `,"metadata":`...), in, original, meta.GetLabels(), meta.GetAnnotations()); err != nil {
		return dst, err
	}
	if plain, ok := meta.(*metav1.ObjectMeta); ok {
		*plain = metav1.ObjectMeta{} // do not encode it twice
	}
	return c.appendRest(dst, object)
}

// appendRest appends the fields other than apiVersion, kind and metadata, and ends the object.
func (c *codec) appendRest(dst []byte, object any) ([]byte, error) {
	buffer := buffers.Get().(*[]byte)
	encoded, err := jsonpatch.AppendValue((*buffer)[:0], object)
	if err != nil {
		return dst, fmt.Errorf("the result of the converter cannot be encoded: %s", locate(err))
	}
	defer release(buffer, encoded)
	if len(encoded) == 0 || encoded[0] != '{' {
		return dst, errors.New("the result of the converter is encoded as something else than an object")
	}
	r := rawjson.NewReader(encoded)
	r.Object(func(name []byte) {
		switch string(name) {
		case "apiVersion", "kind", "metadata":
		default:
			dst = append(rawjson.AppendString(append(dst, ','), string(name)), ':')
			dst = append(dst, r.Value()...)
		}
	})
	return append(dst, '}'), nil
}

// locate returns where and as which type an object cannot be decoded or encoded. It gives no
// byte offsets: the decoded bytes lack parts of the original.
func locate(err error) string {
	where, _, problem := decode.Describe(err)
	if where == "" {
		return problem
	}
	return where + ": " + problem
}
