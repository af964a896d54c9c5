// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// comparison returns the wanted and the actual object as text that is equal if they are.
func comparison(want any, object []byte) (wanted, got string, err error) {
	switch want := want.(type) {
	case string:
		return comparison([]byte(want), object)
	case []byte:
		raw, err := yaml.YAMLToJSON(want) // JSON is YAML
		return pretty(raw), pretty(object), err
	case runtime.Object:
		typ := reflect.TypeOf(want)
		if typ.Kind() != reflect.Pointer || reflect.ValueOf(want).IsNil() {
			return "", "", fmt.Errorf("a %T is wanted, which is not a pointer to an object", want)
		}
		actual := reflect.New(typ.Elem()).Interface().(runtime.Object)
		if err := json.Unmarshal(object, actual); err != nil {
			return "", "", err
		}
		expected := want.DeepCopyObject()
		if kind := expected.GetObjectKind(); kind.GroupVersionKind() == (schema.GroupVersionKind{}) {
			kind.SetGroupVersionKind(actual.GetObjectKind().GroupVersionKind())
		}
		a, err := json.Marshal(expected)
		if err != nil {
			return "", "", err
		}
		b, err := json.Marshal(actual)
		return pretty(a), pretty(b), err
	default:
		return "", "", fmt.Errorf("a %T is wanted; it may be a runtime.Object, a string or []byte", want)
	}
}

// decode preserves all digits of numbers.
func decode(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree any
	err := decoder.Decode(&tree)
	return tree, err
}

// pretty formats JSON as YAML with sorted keys, for display and comparison. Invalid JSON is
// returned unchanged.
func pretty(raw []byte) string {
	text, err := yaml.JSONToYAML(raw)
	if err != nil || len(raw) == 0 {
		return string(raw)
	}
	return string(text)
}

func diff(nameA, nameB, a, b string) string { return udiff.Unified(nameA, nameB, a, b) }
