// SPDX-License-Identifier: Apache-2.0

package managedfields

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func TestWhatWasSentIsRead(t *testing.T) {
	for _, tc := range []struct {
		name, fields string
		told         bool
		want         []string
	}{
		{name: "a missing value tells nothing"},
		{name: "null tells nothing", fields: `null`},
		{name: "an empty list tells nothing", fields: `[]`},
		{name: "an empty entry tells nothing", fields: `[{}]`},
		{name: "fields of another type tell nothing", fields: `[{"manager":"m","fieldsV1":"f:metadata"}]`},
		{name: "something that is not a list tells nothing", fields: `{"fieldsV1":{}}`},
		{name: "an object without annotations was sent without them", told: true, fields: `[{"fieldsV1":{"f:spec":{}}}]`},
		{name: "empty annotations are none", told: true, fields: `[{"fieldsV1":{"f:metadata":{"f:annotations":{}}}}]`},
		{
			name: "each annotation is told, and not the map that holds them", told: true, want: []string{"a", "example.com/b"},
			fields: `[{"manager":"kubectl","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:a":{},"f:example.com/b":{}}}}}]`,
		},
		{
			name: "every manager counts", told: true, want: []string{"a", "b"},
			fields: `[{"fieldsV1":{"f:metadata":{"f:annotations":{"f:a":{}}}}},{},{"subresource":"status","fieldsV1":{"f:metadata":{"f:annotations":{"f:b":{}}}}}]`,
		},
		{name: "labels are told apart from annotations", told: true, want: []string{"label a"}, fields: `[{"fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}},"f:annotations":{"f:b":{}}}}]`},
		{name: "escaped keys are unescaped", told: true, want: []string{"a"}, fields: `[{"fieldsV1":{"f:metadata":{"f:annotations":{"f\u003a\u0061":{}}}}}]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			told := Sent(jsontext.Value(tc.fields), func(key string) { got = append(got, key) }, func(key string) { got = append(got, "label "+key) })
			if told != tc.told || !slices.Equal(got, tc.want) {
				t.Errorf("told %v and %q, want %v and %q", told, got, tc.told, tc.want)
			}
		})
	}
}

func TestTooManyAnnotationsTellNothing(t *testing.T) {
	keys := make([]string, maxKeys+1)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"f:%d":{}`, i)
	}
	for _, tc := range []struct {
		keys int
		told bool
	}{{maxKeys, true}, {maxKeys + 1, false}} {
		fields := `[{"fieldsV1":{"f:metadata":{"f:annotations":{` + strings.Join(keys[:tc.keys], ",") + `}}}}]`
		visited := 0
		if told := Sent(jsontext.Value(fields), func(string) { visited++ }, nil); told != tc.told || visited > maxKeys {
			t.Errorf("%d annotations: told %v after %d", tc.keys, told, visited)
		}
	}
}

func FuzzSent(f *testing.F) {
	f.Add([]byte(`[{"manager":"kubectl","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:a":{},"f:b":{}}}}},{"fieldsV1":{"f:spec":{}}}]`))
	f.Add([]byte(`[{}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := map[string]bool{}
		told := Sent(data, func(key string) { got[key] = true }, func(string) {}) // must not panic on anything
		if jsontext.Value(data).IsValid() {
			if wanted, want := decoded(data); told != wanted || !maps.Equal(got, want) {
				t.Errorf("told %v and %v, want %v and %v", told, got, wanted, want)
			}
		}
	})
}

// decoded is Annotations with a general decoder.
func decoded(data []byte) (told bool, keys map[string]bool) {
	keys = map[string]bool{}
	var entries []jsontext.Value
	if json.Unmarshal(data, &entries) != nil {
		return false, keys
	}
	member := func(value jsontext.Value, name string) jsontext.Value {
		var object map[string]jsontext.Value
		if json.Unmarshal(value, &object) != nil {
			return nil
		}
		return object[name]
	}
	for _, entry := range entries {
		fields := member(entry, "fieldsV1")
		if fields.Kind() != '{' {
			continue
		}
		told = true
		var annotations map[string]jsontext.Value
		if json.Unmarshal(member(member(fields, "f:metadata"), "f:annotations"), &annotations) != nil {
			continue
		}
		for field := range annotations {
			if key, ok := strings.CutPrefix(field, "f:"); ok {
				keys[key] = true
			}
		}
	}
	return told, keys
}
