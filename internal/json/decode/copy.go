// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CopyProblem describes what is wrong with a type's DeepCopyObject, or returns "". It
// copies an object in which every field is set and looks for fields that the copy lacks
// or shares, such as fields added after the method was generated. Object only supplies
// the type. Fields without JSON are ignored.
func CopyProblem(object runtime.Object) (problem string) {
	typ := reflect.TypeOf(object).Elem()
	full := reflect.New(typ)
	filler{}.fill(full.Elem())
	defer func() {
		if recover() != nil {
			problem = fmt.Sprintf("the DeepCopyObject of %s panics if all fields are set", typ)
		}
	}()
	copied := reflect.ValueOf(full.Interface().(runtime.Object).DeepCopyObject())
	if copied.Type() != full.Type() {
		return fmt.Sprintf("the DeepCopyObject of %s returns a %s", typ, copied.Type())
	}
	if found := compareCopy("", full.Elem(), copied.Elem()); found != "" {
		return fmt.Sprintf("the DeepCopyObject of %s %s: run controller-gen again", typ, found)
	}
	return ""
}

// A filler sets every field. It counts how often it is inside a type, to stop at
// recursive types.
type filler map[reflect.Type]int

// opaque holds values of types with unexported content.
var opaque = map[reflect.Type]reflect.Value{
	reflect.TypeFor[time.Time]():            reflect.ValueOf(time.Unix(1, 0)),
	reflect.TypeFor[metav1.Time]():          reflect.ValueOf(metav1.Unix(1, 0)),
	reflect.TypeFor[metav1.MicroTime]():     reflect.ValueOf(metav1.MicroTime{Time: time.Unix(1, 0)}),
	reflect.TypeFor[resource.Quantity]():    reflect.ValueOf(resource.MustParse("1")),
	reflect.TypeFor[*metav1.FieldsV1]():     reflect.ValueOf((*metav1.FieldsV1)(nil)), // its bytes never change
	reflect.TypeFor[runtime.RawExtension](): reflect.ValueOf(runtime.RawExtension{Raw: []byte("{}")}),
}

func (f filler) fill(v reflect.Value) {
	typ := v.Type()
	if value, ok := opaque[typ]; ok {
		v.Set(value)
		return
	}
	if f[typ] > 0 {
		return
	}
	f[typ]++
	defer func() { f[typ]-- }()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		for i := range typ.NumField() {
			if inJSON(typ.Field(i)) {
				f.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(typ, 1, 1))
		f.fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(typ.Key()).Elem(), reflect.New(typ.Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.Set(reflect.MakeMap(typ))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	}
}

func inJSON(field reflect.StructField) bool {
	return field.IsExported() && field.Tag.Get("json") != "-"
}

// compareCopy describes the first field that a copy lacks or shares with the object.
func compareCopy(path string, object, copied reflect.Value) string {
	lacks, shares := "does not copy "+path, "shares "+path+" with the object"
	if _, is := opaque[object.Type()]; is {
		if !reflect.DeepEqual(object.Interface(), copied.Interface()) {
			return lacks
		}
		return ""
	}
	switch object.Kind() {
	case reflect.Struct:
		for i := range object.NumField() {
			field := object.Type().Field(i)
			if !inJSON(field) {
				continue
			}
			below := path
			if !field.Anonymous {
				below += "." + field.Name
			}
			if found := compareCopy(below, object.Field(i), copied.Field(i)); found != "" {
				return found
			}
		}
	case reflect.Pointer:
		switch {
		case object.IsNil():
		case copied.IsNil():
			return lacks
		case object.Pointer() == copied.Pointer() && object.Type().Elem().Size() > 0:
			return shares
		default:
			return compareCopy(path, object.Elem(), copied.Elem())
		}
	case reflect.Slice:
		if object.Len() != copied.Len() {
			return lacks
		}
		if object.Len() > 0 && object.Pointer() == copied.Pointer() && object.Type().Elem().Size() > 0 {
			return shares
		}
		for i := range object.Len() {
			if found := compareCopy(path, object.Index(i), copied.Index(i)); found != "" {
				return found
			}
		}
	case reflect.Map:
		if object.Len() != copied.Len() {
			return lacks
		}
		if object.Len() > 0 && object.Pointer() == copied.Pointer() {
			return shares
		}
		for _, key := range object.MapKeys() {
			value := copied.MapIndex(key)
			if !value.IsValid() {
				return lacks
			}
			if found := compareCopy(path, object.MapIndex(key), value); found != "" {
				return found
			}
		}
	case reflect.Interface, reflect.Func, reflect.Chan:
	default:
		if !reflect.DeepEqual(object.Interface(), copied.Interface()) {
			return lacks
		}
	}
	return ""
}
