// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Everything that can be changed in an object through its fields is changed, one after
// the other, and each change must be seen.
func TestImprintSeesEveryChange(t *testing.T) {
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(2), serializer.NewCodecFactory(apiruntime.NewScheme()))
	for _, empty := range []func() apiruntime.Object{
		func() apiruntime.Object { return &corev1.Pod{} },
		func() apiruntime.Object { return &corev1.Secret{} },
		func() apiruntime.Object { return &appsv1.Deployment{} },
		func() apiruntime.Object { return &oddities{} },
	} {
		target := For(reflect.TypeOf(empty()).Elem())
		changes, opaque := 0, 0
		for range 5 {
			object := empty()
			if _, ok := object.(*oddities); !ok {
				random.Fill(object)
			}
			raw, err := json.Marshal(object)
			if err != nil {
				continue
			}
			for at := 0; ; at++ {
				m := &Imprint{}
				read, err := target.New(raw, m)
				if err != nil {
					t.Fatalf("%T: %v", object, err)
				}
				if m.Opaque {
					opaque++
					break
				}
				if !m.Unchanged() {
					t.Fatalf("%T: nothing was changed, and a change is seen in %s", object, raw)
				}
				c := changer{at: at}
				c.value(reflect.ValueOf(read).Elem(), "")
				if c.done == "" {
					break
				}
				changes++
				if m.Unchanged() {
					t.Fatalf("%T: the change of %s is not seen in %s", object, c.done, raw)
				}
			}
		}
		if _, odd := empty().(*oddities); !odd && changes < 100 {
			t.Errorf("%T: only %d changes were tried, %d objects were opaque", empty(), changes, opaque)
		}
	}
}

// A changer makes the change with a number in an object.
type changer struct {
	at   int
	done string
}

// value visits everything that a value holds.
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
				if v.Len() > 0 { // in place, to a copy of what any entry is
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
				c.at++ // not a change of its own
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
	}
}
