// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// shapes has fields that pods and deployments lack.
type shapes struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status     corev1.PodStatus                       `json:"status"`
	Extension  apiruntime.RawExtension                `json:"extension"`
	Extensions []apiruntime.RawExtension              `json:"extensions,omitempty"`
	Any        *apiextensionsv1.JSON                  `json:"any,omitempty"`
	Message    json.RawMessage                        `json:"message,omitempty"`
	Amount     resource.Quantity                      `json:"amount"`
	Amounts    map[string]*resource.Quantity          `json:"amounts,omitempty"`
	Limits     corev1.ResourceList                    `json:"limits,omitempty"`
	Ports      map[string]intstr.IntOrString          `json:"ports,omitempty"`
	Every      *metav1.Duration                       `json:"every,omitempty"`
	At         metav1.MicroTime                       `json:"at"`
	Times      []*metav1.Time                         `json:"times,omitempty"`
	Bytes      []byte                                 `json:"bytes,omitempty"`
	BytesMap   map[string][]byte                      `json:"bytesMap,omitempty"`
	Lists      map[string][]string                    `json:"lists"`
	Maps       map[string]map[string]string           `json:"maps,omitempty"`
	PointerMap map[corev1.ResourceName]*corev1.EnvVar `json:"pointerMap,omitempty"`
	Structs    map[string]corev1.VolumeMount          `json:"structs,omitempty"`
	Pointers   []*corev1.EnvVar                       `json:"pointers"`
	Nested     [][]corev1.KeyToPath                   `json:"nested,omitempty"`
	Share      float64                                `json:"share"`
	Numbers    []int8                                 `json:"numbers,omitempty"`
}

func (s *shapes) DeepCopyObject() apiruntime.Object { panic("it is not called") }

// A changer makes random objects, and changes in them: in place, also through what a handler
// kept of this and earlier objects, and by other values, also where the memory of the former
// ones was collected.
type changer struct {
	number int
	random *rand.Rand

	mu      sync.Mutex // the server and the caller know nothing of each other
	object  any        // of the call before
	tries   int        // how many changes the handler is to make
	changed []string   // places, none inside another
	done    []string   // what was done there
	result  []byte     // the object after that
	parts   map[reflect.Type][]reflect.Value
	texts   int
}

// begin fills an object that is to be sent.
func (c *changer) begin(object apiruntime.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts == nil {
		c.parts = map[reflect.Type][]reflect.Value{}
	}
	c.changed, c.done, c.result = c.changed[:0], c.done[:0], nil
	if c.tries = 1; !c.one(4) {
		c.tries += c.random.Intn(64)
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		u.Object = map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}, "spec": c.tree(0)}
		return
	}
	c.fill(reflect.ValueOf(object).Elem(), 0)
}

// end tells what the handler did.
func (c *changer) end() (result []byte, changed int, done []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result, len(c.changed), c.done
}

// change is what the handlers do.
func (c *changer) change(object apiruntime.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.tries {
		if c.object != nil && c.one(16) { // a handler may change what it was given once
			changed, done := c.changed, c.done
			c.changed, c.done = nil, nil
			c.in(c.object)
			c.changed, c.done = changed, done
		}
		c.in(object)
		c.collect(64)
	}
	c.object = object
	var err error
	c.result, err = json.Marshal(object)
	return err
}

// in changes something in an object.
func (c *changer) in(object any) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		spec := u.Object["spec"]
		c.below(reflect.ValueOf(&spec).Elem(), "/spec")
		u.Object["spec"] = spec
		return
	}
	c.below(reflect.ValueOf(object).Elem(), "")
}

func (c *changer) one(of int) bool { return c.random.Intn(of) == 0 }

// collect collects memory, once in a while.
func (c *changer) collect(of int) {
	if c.one(of) {
		runtime.GC()
	}
}

// below changes a value, or something in it.
func (c *changer) below(v reflect.Value, path string) {
	if slices.Contains(c.changed, path) {
		return
	}
	enter := !c.one(6) || path == "" || path == "/ObjectMeta" // its name must not change
	if _, ok := special[v.Type()]; ok {
		enter = false
	}
	switch v.Kind() {
	case reflect.Struct:
		if !enter {
			break
		}
		at := c.random.Intn(v.NumField())
		for range 3 { // rather one that holds something
			if v.Field(at).IsZero() {
				at = c.random.Intn(v.NumField())
			}
		}
		switch field := v.Type().Field(at); {
		case !field.IsExported(), field.Type == reflect.TypeFor[metav1.TypeMeta](),
			v.Type() == reflect.TypeFor[metav1.ObjectMeta]() && (field.Name == "Name" || field.Name == "Namespace"):
		default:
			c.below(v.Field(at), path+"/"+field.Name)
		}
		return
	case reflect.Pointer:
		if enter && !v.IsNil() {
			c.below(v.Elem(), path+"/*")
			return
		}
	case reflect.Interface:
		if enter && !v.IsNil() {
			inner := reflect.New(v.Elem().Type()).Elem()
			inner.Set(v.Elem())
			c.below(inner, path+"/*")
			v.Set(inner)
			return
		}
	case reflect.Slice:
		if enter && v.Len() > 0 {
			at := c.random.Intn(v.Len())
			c.below(v.Index(at), fmt.Sprintf("%s/%d", path, at))
			return
		}
	case reflect.Map:
		if enter && v.Len() > 0 {
			key := c.key(v)
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(v.MapIndex(key))
			c.below(elem, path+"/"+key.String())
			v.SetMapIndex(key, elem)
			return
		}
	}
	c.here(v, path)
}

// here changes a value itself, unless something in it is changed already.
func (c *changer) here(v reflect.Value, path string) {
	if slices.ContainsFunc(c.changed, func(other string) bool { return strings.HasPrefix(other, path+"/") }) {
		return
	}
	const large = 4 << 10 // a part that is used again may contain itself
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	before, _ := json.Marshal(v.Interface())
	what := c.other(v)
	after, err := json.Marshal(v.Interface())
	if err != nil || len(after) > large {
		v.Set(was)
		clear(c.parts)
		return
	}
	if string(before) != string(after) && (!empty(before) || !empty(after)) {
		c.changed, c.done = append(c.changed, path), append(c.done, path+": "+what)
	}
}

// empty reports whether a member with that value may be omitted.
func empty(value []byte) bool {
	return slices.Contains([]string{"null", "[]", "{}", `""`, "0", "false"}, string(value))
}

// other gives a place another value, and tells how.
func (c *changer) other(v reflect.Value) string {
	if f, ok := special[v.Type()]; ok {
		if raw := rawOf(v); c.one(2) && nextDigit(raw) {
			return "bytes in place"
		}
		if q, ok := v.Addr().Interface().(*resource.Quantity); ok && c.one(2) {
			q.Add(resource.MustParse("3"))
			return "a quantity in place"
		}
		v.SetZero()
		c.collect(16)
		v.Set(reflect.ValueOf(f(c)))
		return "another value of its type"
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if v.Kind() != reflect.Pointer && v.Type().Elem().Kind() == reflect.Interface {
			break // a tree would contain itself
		}
		if parts := c.parts[v.Type()]; len(parts) > 0 && c.one(6) {
			v.Set(parts[c.random.Intn(len(parts))])
			return "a part of another place, or an earlier object"
		}
		if c.one(6) && !v.IsNil() {
			part := reflect.New(v.Type()).Elem()
			part.Set(v)
			c.parts[v.Type()] = append(c.parts[v.Type()], part)
			if parts := c.parts[v.Type()]; len(parts) > 8 {
				c.parts[v.Type()] = parts[1:]
			}
		}
	}
	switch v.Kind() {
	case reflect.String:
		length := v.Len()
		v.SetString("")
		c.collect(16)
		if c.one(2) {
			v.SetString(c.string())
			return "another string"
		}
		c.texts++
		v.SetString(fmt.Sprintf("%0*d", length, c.texts))
		return "a string of the same length"
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt((v.Int() + 1) % 100)
	case reflect.Uint8:
		v.SetUint((v.Uint() + 1) % 100)
	case reflect.Float64:
		v.SetFloat(v.Float() + 0.25)
	case reflect.Slice:
		return c.slice(v)
	case reflect.Map:
		return c.mapping(v)
	case reflect.Pointer:
		switch {
		case v.IsNil():
			v.Set(reflect.New(v.Type().Elem()))
			c.fill(v.Elem(), 4)
			return "a pointer instead of nil"
		case c.one(2):
			v.SetZero()
			return "nil instead of a pointer"
		}
		copied := reflect.New(v.Type().Elem())
		copied.Elem().Set(v.Elem())
		v.SetZero()
		c.collect(16)
		if _, ok := special[copied.Type().Elem()]; ok || copied.Elem().Kind() != reflect.Struct {
			c.other(copied.Elem())
		} else if at := c.random.Intn(copied.Elem().NumField()); copied.Elem().Field(at).CanSet() {
			c.other(copied.Elem().Field(at))
		}
		v.Set(copied)
		return "another pointer"
	default:
		v.SetZero()
		c.collect(16)
		c.fill(v, 4)
	}
	return "another value"
}

func (c *changer) slice(v reflect.Value) string {
	alias, n := v.Slice(0, v.Len()), v.Len()
	element := reflect.New(v.Type().Elem()).Elem()
	c.fill(element, 4)
	switch at := c.random.Intn(max(n, 1)); {
	case n == 0 || c.one(5):
		v.Set(reflect.Append(v, element))
		return "an element more"
	case c.one(7):
		v.SetZero()
		c.collect(16)
		v.Set(reflect.Append(reflect.AppendSlice(reflect.Zero(v.Type()), alias), element))
		return "an element more in other memory"
	case c.one(6):
		v.Set(reflect.Append(v.Slice(0, at), element))
		return "elements less, and another within the capacity"
	case c.one(5):
		v.Set(reflect.AppendSlice(v.Slice(0, at), v.Slice(at+1, n)))
		return "an element less in place"
	case c.one(4):
		reflect.Swapper(alias.Interface())(0, at)
		return "two elements exchanged through another slice"
	case c.one(3):
		alias.Index(at).Set(element)
		return "an element set through another slice"
	case c.one(2):
		v.Set(v.Slice(at, n))
		return "the end of the slice"
	}
	grown := reflect.Append(v.Slice(0, n), element, element)
	grown.Index(0).Set(element)
	v.Set(grown.Slice(0, n))
	return "an element set where append may have moved it"
}

func (c *changer) mapping(v reflect.Value) string {
	alias := reflect.New(v.Type()).Elem()
	if alias.Set(v); v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
		alias.Set(v)
	}
	element, key := reflect.New(v.Type().Elem()).Elem(), reflect.New(v.Type().Key()).Elem()
	c.fill(element, 4)
	c.texts++
	key.SetString("k" + strconv.Itoa(c.texts))
	switch n := v.Len(); {
	case n == 0 || c.one(5):
		alias.SetMapIndex(key, element)
		return "an entry more"
	case c.one(4):
		alias.SetMapIndex(c.key(v), element)
		return "another entry"
	case c.one(3):
		alias.SetMapIndex(c.key(v), reflect.Value{})
		return "an entry less"
	case c.one(2):
		alias.SetMapIndex(c.key(v), reflect.Value{})
		alias.SetMapIndex(key, element)
		return "an entry instead of another"
	}
	other := reflect.MakeMap(v.Type())
	for _, k := range v.MapKeys() {
		other.SetMapIndex(k, v.MapIndex(k))
	}
	v.SetZero()
	c.collect(16)
	other.SetMapIndex(key, element)
	v.Set(other)
	return "another map"
}

// key returns a key of a map, the same one in each run.
func (c *changer) key(v reflect.Value) reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys[c.random.Intn(len(keys))]
}

// special makes values of types with JSON of their own.
var special = map[reflect.Type]func(*changer) any{
	reflect.TypeFor[resource.Quantity](): func(c *changer) any {
		return resource.MustParse([]string{"100m", "1", "2Gi", "0.5", "123456789012345678901234567890", strconv.Itoa(c.random.Intn(1000))}[c.random.Intn(6)])
	},
	reflect.TypeFor[metav1.Time]():      func(c *changer) any { return metav1.Unix(c.random.Int63n(1<<31), 0) },
	reflect.TypeFor[metav1.MicroTime](): func(c *changer) any { return metav1.NewMicroTime(time.UnixMicro(c.random.Int63n(1 << 50))) },
	reflect.TypeFor[metav1.Duration]():  func(c *changer) any { return metav1.Duration{Duration: time.Duration(c.random.Int63n(1 << 40))} },
	reflect.TypeFor[intstr.IntOrString](): func(c *changer) any {
		if c.one(2) {
			return intstr.FromString(c.string())
		}
		return intstr.FromInt32(c.random.Int31n(100))
	},
	reflect.TypeFor[apiruntime.RawExtension](): func(c *changer) any { return apiruntime.RawExtension{Raw: c.raw()} },
	reflect.TypeFor[apiextensionsv1.JSON]():    func(c *changer) any { return apiextensionsv1.JSON{Raw: c.raw()} },
	reflect.TypeFor[json.RawMessage]():         func(c *changer) any { return json.RawMessage(c.raw()) },
	reflect.TypeFor[metav1.FieldsV1]():         func(c *changer) any { return metav1.FieldsV1{Raw: c.raw()} }, //nolint:staticcheck // the field itself is changed
	reflect.TypeFor[metav1.TypeMeta]():         func(*changer) any { return metav1.TypeMeta{} },
}

// raw makes the content of a [apiruntime.RawExtension].
func (c *changer) raw() []byte {
	text, _ := json.Marshal(c.string())
	return fmt.Appendf(nil, `{"n":%d,"list":[%d,{"s":%s}]}`, 1+c.random.Intn(9), c.random.Intn(100), text)
}

// rawOf returns the bytes of a value that [changer.raw] made.
func rawOf(v reflect.Value) []byte {
	switch v.Type() {
	case reflect.TypeFor[json.RawMessage]():
		return v.Bytes()
	case reflect.TypeFor[apiruntime.RawExtension](), reflect.TypeFor[apiextensionsv1.JSON]():
		return v.FieldByName("Raw").Bytes()
	}
	return nil
}

func nextDigit(raw []byte) bool {
	at := slices.IndexFunc(raw, func(b byte) bool { return b >= '1' && b <= '9' })
	if at >= 0 {
		raw[at] = '1' + (raw[at]-'0')%9
	}
	return at >= 0
}

func (c *changer) string() string {
	c.texts++
	switch text := strconv.Itoa(c.texts); c.random.Intn(5) {
	case 0:
		return "tab\tand \"quotes\" <" + text + ">"
	case 1:
		return "ü☃😀" + text
	case 2:
		return strings.Repeat(text, 1+200/len(text)) // more than shares a block of memory
	default:
		return "s" + text
	}
}

// fill makes a random value, which is the smaller the deeper it is.
func (c *changer) fill(v reflect.Value, depth int) {
	if f, ok := special[v.Type()]; ok {
		v.Set(reflect.ValueOf(f(c)))
		return
	}
	some := c.random.Intn(max(1, 4-depth/3))
	switch v.Kind() {
	case reflect.String:
		v.SetString(c.string())
	case reflect.Bool:
		v.SetBool(c.one(2))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(c.random.Int63n(100))
	case reflect.Uint8:
		v.SetUint(uint64(c.random.Intn(100)))
	case reflect.Float64:
		v.SetFloat(float64(c.random.Intn(100)) / 4)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if some > 0 && c.one(2) {
			v.Set(reflect.New(v.Type().Elem()))
			c.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		for range some {
			element := reflect.New(v.Type().Elem()).Elem()
			c.fill(element, depth+1)
			v.Set(reflect.Append(v, element))
		}
	case reflect.Map:
		if some > 0 {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for range some {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			c.fill(key, depth+1)
			c.fill(element, depth+1)
			v.SetMapIndex(key, element)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(c.tree(depth + 1)))
	}
}

// tree makes a value as unstructured objects hold it.
func (c *changer) tree(depth int) any {
	switch c.random.Intn(6) {
	case 0:
		return c.random.Int63() // more digits than a float64 has
	case 1:
		return c.one(2)
	case 2:
		return float64(c.random.Intn(100)) + 0.5
	case 3, 4:
		if depth > 6 {
			break
		}
		list := make([]any, c.random.Intn(4))
		for i := range list {
			list[i] = c.tree(depth + 1)
		}
		return list
	}
	if depth > 6 {
		return c.string()
	}
	object := map[string]any{"s": c.string()}
	for range c.random.Intn(4) {
		object[c.string()] = c.tree(depth + 1)
	}
	return object
}
