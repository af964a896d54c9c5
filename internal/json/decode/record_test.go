// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mutations is the number of changes made where other memory was collected.
var mutations = flag.Int("mutations", 10_000, "how many changes are made where collected memory was")

// Changes everything that can be changed through an object's fields, one at a time. The
// record must see each change, and tell what was there before.
func TestRecordSeesEveryChange(t *testing.T) {
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(2), serializer.NewCodecFactory(apiruntime.NewScheme()))
	for _, empty := range []func() apiruntime.Object{
		func() apiruntime.Object { return &corev1.Pod{} },
		func() apiruntime.Object { return &corev1.Secret{} },
		func() apiruntime.Object { return &appsv1.Deployment{} },
		func() apiruntime.Object { return &shapes{} },
	} {
		target := For(reflect.TypeOf(empty()).Elem())
		changes, objects := 0, 5
		if testing.Short() {
			objects = 1
		}
		for range objects {
			object := empty()
			if s, ok := object.(*shapes); ok {
				*s = *filled()
			} else {
				random.Fill(object)
			}
			raw, err := json.Marshal(object)
			if err != nil {
				continue
			}
			for at := 0; ; at++ {
				record := NewRecord()
				read, err := target.New(raw, record)
				if err != nil {
					t.Fatalf("%T: %v", object, err)
				}
				if record.Before(read) != read {
					t.Fatalf("%T: nothing was changed, and a change is seen in %s", object, raw)
				}
				c := changer{at: at}
				c.value(reflect.ValueOf(read).Elem(), "")
				if c.done == "" {
					break
				}
				changes++
				before := record.Before(read)
				if before == read {
					t.Fatalf("%T: the change of %s is not seen in %s", object, c.done, raw)
				}
				want, err := target.New(raw, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(before, want) {
					t.Fatalf("%T: before the change of %s it was %+v in the record, of %s", object, c.done, before, raw)
				}
			}
		}
		if changes < 20*objects {
			t.Errorf("%T: only %d changes were tried", empty(), changes)
		}
	}
}

// shapes has a field of every shape that objects use.
type shapes struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Text       string                          `json:"text"`
	Name       corev1.ResourceName             `json:"name"`
	Pointer    *string                         `json:"pointer"`
	Texts      []string                        `json:"texts"`
	Nested     []nested                        `json:"nested"`
	Map        map[string]string               `json:"map"`
	Port       intstr.IntOrString              `json:"port"`
	Ports      []*intstr.IntOrString           `json:"ports"`
	PortMap    map[string]intstr.IntOrString   `json:"portMap"`
	NestedMap  map[string]nested               `json:"nestedMap"`
	PointerMap map[corev1.ResourceName]*nested `json:"pointerMap"`
	Amount     resource.Quantity               `json:"amount"`
	Amounts    corev1.ResourceList             `json:"amounts"`
	Bytes      []byte                          `json:"bytes"`
	BytesMap   map[string][]byte               `json:"bytesMap"`
	Message    json.RawMessage                 `json:"message"`
	Extension  apiruntime.RawExtension         `json:"extension"`
	Any        *apiextensionsv1.JSON           `json:"any"`
	Fields     *metav1.FieldsV1                `json:"fields"`
	Own        reader                          `json:"own"`
	Owns       []reader                        `json:"owns"`
}

type nested struct {
	Text string `json:"text"`
}

func (s *shapes) DeepCopyObject() apiruntime.Object { panic("it is not called") }

// A reader encodes and decodes itself and owns the memory of what it reads.
type reader struct {
	hidden string
	Bytes  []byte
	Map    map[string]string
	Next   *reader
}

func (r *reader) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*r = reader{hidden: text, Bytes: []byte(text), Map: map[string]string{"a": text + "1"}, Next: &reader{hidden: text + "2"}}
	return nil
}

func (r reader) MarshalJSON() ([]byte, error) { return json.Marshal(r.hidden) }

// escaped contains JSON escapes, so that the decoded string does not alias the input.
const escaped = "ab\"cd\"efgh"

func filled() *shapes {
	text, port := escaped, intstr.FromString(escaped)
	return &shapes{
		Text: text, Name: escaped, Pointer: &text, Texts: []string{"a", escaped}, Nested: []nested{{escaped}},
		Map: map[string]string{"a": escaped, "b": "c"}, Port: port, Ports: []*intstr.IntOrString{&port},
		PortMap: map[string]intstr.IntOrString{"a": port}, NestedMap: map[string]nested{"a": {escaped}},
		PointerMap: map[corev1.ResourceName]*nested{"a": {escaped}},
		Amount:     resource.MustParse("123456789012345678901234567890"),
		Amounts:    corev1.ResourceList{"a": resource.MustParse("123456789012345678901234567890"), "b": resource.MustParse("1")},
		Bytes:      []byte(escaped), BytesMap: map[string][]byte{"a": []byte(escaped)}, Message: json.RawMessage(`"ab\"cd"`),
		Extension: apiruntime.RawExtension{Raw: []byte(`{"a":"b"}`)}, Any: &apiextensionsv1.JSON{Raw: []byte(`{"a":"b"}`)},
		Fields: &metav1.FieldsV1{Raw: []byte(`{"a":"b"}`)}, Own: reader{hidden: escaped}, Owns: []reader{{hidden: escaped}}, //nolint:staticcheck // the field itself is changed
	}
}

// A handler drops a decoded value, the garbage collector frees it, and other content of
// the same size takes its place, sooner or later at the same address. The record must
// see the change.
func TestRecordSeesChangesWhateverTheMemoryDoes(t *testing.T) {
	places := []struct {
		name string
		put  func(s *shapes, text string)
	}{
		{"a string", func(s *shapes, text string) { s.Text = text }},
		{"a string of a named type", func(s *shapes, text string) { s.Name = corev1.ResourceName(text) }},
		{"a string behind a pointer", func(s *shapes, text string) { *s.Pointer = text }},
		{"another pointer", func(s *shapes, text string) { s.Pointer = &text }},
		{"an element", func(s *shapes, text string) { s.Texts[1] = text }},
		{"another list", func(s *shapes, text string) { s.Texts = []string{"a", text} }},
		{"another list of structs", func(s *shapes, text string) { s.Nested = []nested{{text}} }},
		{"an entry", func(s *shapes, text string) { s.Map["a"] = text }},
		{"another map", func(s *shapes, text string) { s.Map = map[string]string{"a": text, "b": "c"} }},
		{"a port", func(s *shapes, text string) { s.Port.StrVal = text }},
		{"a port behind a pointer", func(s *shapes, text string) { s.Ports[0].StrVal = text }},
		{"another port", func(s *shapes, text string) { p := intstr.FromString(text); s.Ports[0] = &p }},
		{"a port in a map", func(s *shapes, text string) { s.PortMap["a"] = intstr.FromString(text) }},
		{"a struct in a map", func(s *shapes, text string) { s.NestedMap["a"] = nested{text} }},
		{"a struct behind a pointer in a map", func(s *shapes, text string) { s.PointerMap["a"].Text = text }},
		{"another struct in a map", func(s *shapes, text string) { s.PointerMap["a"] = &nested{text} }},
		{"a quantity in a map", func(s *shapes, text string) { s.Amounts["b"] = resource.MustParse(strconv.Itoa(len(text) + 2)) }},
		{"another map of quantities", func(s *shapes, text string) { s.Amounts = corev1.ResourceList{"b": resource.MustParse("1")} }},
		{"a large quantity in place", func(s *shapes, text string) {
			large := s.Amounts["a"]
			large.AsDec().SetUnscaled(int64(len(text)))
		}},
		{"bytes", func(s *shapes, text string) { s.Bytes = []byte(text) }},
		{"bytes in place", func(s *shapes, text string) { s.Bytes = append(s.Bytes[:0], text...) }},
		{"bytes in a map", func(s *shapes, text string) { s.BytesMap["a"] = []byte(text) }},
		{"a raw message", func(s *shapes, text string) { s.Message = json.RawMessage(strconv.Quote(text[:6])) }},
		{"an extension", func(s *shapes, text string) { s.Extension.Raw = []byte(`{"a":"` + text[:1] + `"}`) }},
		{"an extension in place", func(s *shapes, text string) { copy(s.Extension.Raw[6:], text[:1]) }},
		{"any JSON", func(s *shapes, text string) { s.Any.Raw = []byte(`{"a":"` + text[:1] + `"}`) }},
		{"fields", func(s *shapes, text string) { s.Fields.Raw = []byte(`{"a":"` + text[:1] + `"}`) }}, //nolint:staticcheck // the same
		{"what a type reads itself", func(s *shapes, text string) { s.Own.hidden = text }},
		{"bytes of such a type", func(s *shapes, text string) { s.Own.Bytes = []byte(text) }},
		{"an entry of such a type", func(s *shapes, text string) { s.Own.Map["a"] = text + "1" }},
		{"what such a type points to", func(s *shapes, text string) { s.Owns[0].Next = &reader{hidden: text + "2"} }},
	}
	raw, err := json.Marshal(filled())
	if err != nil {
		t.Fatal(err)
	}
	const each = 100 // changes between two collections
	target := For(reflect.TypeFor[shapes]())
	for _, place := range places {
		t.Run(place.name, func(t *testing.T) {
			for round := range max(1, *mutations/len(places)/each) {
				record := NewRecord()
				read, err := target.New(raw, record)
				if err != nil {
					t.Fatal(err)
				}
				if record.Before(read) != read {
					t.Fatal("nothing was changed, and a change is seen")
				}
				place.put(read.(*shapes), strings.Repeat("-", len(escaped)))
				runtime.GC()
				for i := range each {
					place.put(read.(*shapes), fmt.Sprintf("%0*d", len(escaped), round*each+i))
					if record.Before(read) == read {
						t.Fatalf("change %d after collection %d is not seen", i, round)
					}
				}
			}
		})
	}
}

// A changer makes one change in an object, selected by number.
type changer struct {
	at   int
	done string
}

// value visits everything in a value.
func (c *changer) value(v reflect.Value, path string) {
	if c.done != "" {
		return
	}
	if v.CanSet() {
		if c.at == 0 {
			other := reflect.New(v.Type()).Elem()
			switch v.Kind() {
			case reflect.String:
				other.SetString(v.String() + "x")
			case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
				other.SetInt(v.Int() ^ 1)
			case reflect.Bool:
				other.SetBool(!v.Bool())
			case reflect.Uint8:
				other.SetUint(v.Uint() ^ 1)
			case reflect.Slice:
				other.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
			case reflect.Pointer:
				if v.IsNil() {
					other.Set(reflect.New(v.Type().Elem()))
				}
			case reflect.Map:
				if v.Len() > 0 { // in place
					key := v.MapKeys()[0]
					v.SetMapIndex(key, reflect.Value{})
					c.done = path + " (an entry less)"
					return
				}
				other.Set(reflect.MakeMap(v.Type()))
				if !v.IsNil() {
					other.SetZero()
				}
			default:
				c.at++ // not a separate change
			}
			if c.at == 0 {
				v.Set(other)
				c.done = path
				return
			}
		}
		c.at--
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.value(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*time.Location]() {
			c.value(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.value(v.Index(i), path+"[]")
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(v.MapIndex(key))
			if c.value(elem, path+"{}"); c.done != "" {
				v.SetMapIndex(key, elem)
				return
			}
		}
	}
}
