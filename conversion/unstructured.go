// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/json/decode"
	"github.com/sallyport-io/sallyport/internal/json/rawobject"
)

// Unstructured converts objects without a Go type. The function changes the object to the
// desired version; the converter sets apiVersion afterwards. Fields that the function does not
// touch are preserved.
func Unstructured(kind schema.GroupKind, versions []string, convert func(ctx context.Context, object *unstructured.Unstructured, version string) error) Converter {
	problems := []error{checkKind(kind)}
	if convert == nil {
		problems = append(problems, errors.New("the function that converts is missing"))
	}
	return newConverter(kind, versions, &trees{
		kind: kind, versions: versions, function: convert, codec: codec{},
	}, problems...)
}

type trees struct {
	kind     schema.GroupKind
	versions []string
	function func(ctx context.Context, object *unstructured.Unstructured, version string) error
	codec    codec
}

func (*trees) prototype(int) runtime.Object { return nil }

func (t *trees) convert(ctx context.Context, dst []byte, in *rawobject.Object, _, to int) ([]byte, error) {
	tree, err := readTree(in)
	if err != nil {
		return dst, err
	}
	object := &unstructured.Unstructured{Object: tree}
	if err := t.function(ctx, object, t.versions[to]); err != nil {
		return dst, err
	}
	if object.GetKind() != t.kind.Kind {
		return dst, errors.New("the converter has changed kind, which must stay")
	}
	if err := checkIdentity(in, object); err != nil {
		return dst, err
	}
	labels, _, err := unstructured.NestedStringMap(object.Object, "metadata", "labels")
	if err != nil {
		return dst, errors.New("metadata.labels is not a map of strings")
	}
	annotations, _, err := unstructured.NestedStringMap(object.Object, "metadata", "annotations")
	if err != nil {
		return dst, errors.New("metadata.annotations is not a map of strings")
	}
	if dst, err = appendHead(dst, t.kind, t.versions[to]); err != nil {
		return dst, err
	}
	if dst, err = appendMetadata(append(dst, `,"metadata":`...), in, given{}, labels, annotations); err != nil {
		return dst, err
	}
	delete(object.Object, "metadata")
	return t.codec.appendRest(dst, object.Object)
}

// readTree decodes an object, without managed fields.
func readTree(in *rawobject.Object) (map[string]any, error) {
	tree, err := decode.Tree(without(in, in.At.ManagedFields))
	if err != nil {
		return nil, fmt.Errorf("cannot be decoded: %w", err)
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	if !in.At.ManagedFields.Empty() {
		unstructured.RemoveNestedField(object, "metadata", "managedFields")
	}
	return object, nil
}
