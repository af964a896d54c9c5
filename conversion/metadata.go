// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/json/rawobject"
)

// checkIdentity reports changes that a converter must not make. The API server would reject
// them.
func checkIdentity(in *rawobject.Object, out metav1.Object) error {
	for _, part := range []struct {
		field      string
		is, become string
	}{
		{"name", in.Name, out.GetName()},
		{"namespace", in.Namespace, out.GetNamespace()},
		{"uid", in.UID, string(out.GetUID())},
	} {
		switch {
		case part.is == part.become:
		case part.become == "":
			return fmt.Errorf("the converter has lost metadata.%s: let it copy the metadata of the object", part.field)
		default:
			return fmt.Errorf("the converter has changed metadata.%s, which must stay", part.field)
		}
	}
	return nil
}

// appendMetadata appends the original metadata with new labels and annotations. The value of
// original may be empty.
func appendMetadata(dst []byte, in *rawobject.Object, original given, labels, annotations map[string]string) ([]byte, error) {
	if unchanged(original.labels, labels) && unchanged(original.annotations, annotations) {
		if (len(labels) > 0 || in.At.Labels.Empty()) && (len(annotations) > 0 || in.At.Annotations.Empty()) {
			return append(dst, in.At.Metadata.Of(in.Raw)...), nil
		}
	}
	start := len(dst)
	dst, err := appendMap(dst, labels)
	if err != nil {
		return dst, fmt.Errorf("metadata.labels: %w", err)
	}
	middle := len(dst)
	if dst, err = appendMap(dst, annotations); err != nil {
		return dst, fmt.Errorf("metadata.annotations: %w", err)
	}
	if same(in, in.At.Labels, dst[start:middle]) && same(in, in.At.Annotations, dst[middle:]) {
		return append(dst[:start], in.At.Metadata.Of(in.Raw)...), nil
	}
	maps := append([]byte(nil), dst[start:]...)
	middle -= start

	dst = append(dst[:start], '{')
	begin := in.At.Metadata.Start + 1
	removed := []rawobject.Span{in.At.Labels, in.At.Annotations}
	if removed[0].Empty() {
		removed[0] = in.Nulls.Labels
	}
	if removed[1].Empty() {
		removed[1] = in.Nulls.Annotations
	}
	if removed[0].Start > removed[1].Start {
		removed[0], removed[1] = removed[1], removed[0]
	}
	for _, span := range removed {
		if span.Empty() {
			continue
		}
		dst = appendMembers(dst, in.Raw[begin:nameBefore(in.Raw, span.Start)])
		begin = span.End
	}
	dst = appendMembers(dst, in.Raw[begin:in.At.Metadata.End-1])
	if middle > 0 {
		dst = append(appendComma(dst), `"labels":`...)
		dst = append(dst, maps[:middle]...)
	}
	if middle < len(maps) {
		dst = append(appendComma(dst), `"annotations":`...)
		dst = append(dst, maps[middle:]...)
	}
	return append(dst, '}'), nil
}

var errNotUTF8 = errors.New("a key or a value is not valid UTF-8")

func same(in *rawobject.Object, at rawobject.Span, encoded []byte) bool {
	return bytes.Equal(at.Of(in.Raw), encoded)
}

// appendMap appends a map in the order of its keys, or nothing if it is empty.
func appendMap(dst []byte, m map[string]string) (_ []byte, err error) {
	if len(m) == 0 {
		return dst, nil
	}
	keys := make([]string, 0, 8)
	keys = slices.AppendSeq(keys, maps.Keys(m))
	slices.Sort(keys)
	separator := byte('{')
	for _, key := range keys {
		if dst, err = appendString(append(dst, separator), key); err != nil {
			return dst, errNotUTF8
		}
		if dst, err = appendString(append(dst, ':'), m[key]); err != nil {
			return dst, errNotUTF8
		}
		separator = ','
	}
	return append(dst, '}'), nil
}

// appendMembers appends members cut from an object, with their separators.
func appendMembers(dst, members []byte) []byte {
	members = bytes.Trim(members, ", \t\r\n")
	if len(members) == 0 {
		return dst
	}
	return append(appendComma(dst), members...)
}

// appendComma appends a comma unless the object has just begun.
func appendComma(dst []byte) []byte {
	if dst[len(dst)-1] == '{' {
		return dst
	}
	return append(dst, ',')
}

// nameBefore returns where the name of the value at the given offset begins. The names in
// question contain no quotes.
func nameBefore(raw []byte, value int) int {
	end := bytes.LastIndexByte(raw[:value], '"')
	return bytes.LastIndexByte(raw[:end], '"')
}
