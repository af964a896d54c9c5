// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/go-json-experiment/json/jsontext"
)

// oddities has every construct that encoding/json accepts.
type oddities struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	*Embedded
	inner
	Words // not a struct: encoding/json's successor requires a name

	Any       any                           `json:"any,omitempty"`
	Anys      []any                         `json:"anys,omitempty"`
	Tree      map[string]any                `json:"tree,omitempty"`
	Raw       json.RawMessage               `json:"raw,omitempty"`
	Duration  time.Duration                 `json:"duration,omitempty"`
	Durations map[string]metav1.Duration    `json:"durations,omitempty"`
	Bytes     []byte                        `json:"bytes,omitempty"`
	Array     [3]byte                       `json:"array"`
	Short     [2]int                        `json:"short"`
	Quoted    int64                         `json:"quoted,string,omitempty"`
	Text      string                        `json:"text,string,omitempty"`
	Extension runtime.RawExtension          `json:"extension,omitempty"`
	JSON      *apiextensionsv1.JSON         `json:"json,omitempty"`
	Port      *intstr.IntOrString           `json:"port,omitempty"`
	Amount    resource.Quantity             `json:"amount"`
	When      *metav1.MicroTime             `json:"when,omitempty"`
	Numbers   map[int]string                `json:"numbers,omitempty"`
	Pointer   **string                      `json:"pointer,omitempty"`
	Named     Embedded                      `json:",inline"`
	Fields    *metav1.FieldsV1              `json:"fields,omitempty"`
	Case      string                        `json:"caseSensitive,omitempty"`
	Ignored   string                        `json:"-"`
	Float     float64                       `json:"float,omitempty"`
	Limits    map[corev1.ResourceName]int64 `json:"limits,omitempty"`
	Number    json.Number                   `json:"number,omitempty"`
}

type Embedded struct {
	Promoted string `json:"promoted,omitempty"`
}

type Words []string

type inner struct {
	FromInner string `json:"fromInner,omitempty"`
}

func (o *oddities) DeepCopyObject() runtime.Object { c := *o; return &c }

// FuzzDecode compares the decoded value with the result of Kubernetes' own decoder.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Pod","metadata":{"labels":{"a":"b"},"creationTimestamp":null},"spec":{"containers":[{"name":"a","ports":[{"containerPort":80}]}]}}`,
		`{"any":9007199254740993,"anys":[1,1.0,-1e2,null,"x",{"a":[9223372036854775807]}],"tree":{"a":18446744073709551615}}`,
		`{"duration":5,"durations":{"a":"1h"},"bytes":"aGk=","array":[1,2,3],"short":[1],"quoted":"5","text":"\"x\""}`,
		`{"extension":{"a":1},"json":{"b":2},"port":"http","amount":"1500m","when":"2020-01-01T00:00:00.000001Z","numbers":{"1":"a"}}`,
		`{"pointer":"x","Words":["y"],"Named":{"promoted":"z"},"promoted":"w","fromInner":"v","fields":{"f:a":{}}}`,
		`{"CASESENSITIVE":"no","CaseSensitive":"no","Ignored":"no","unknown":{"a":[1]},"raw":[1, 2]}`,
		`{"metadata":null,"any":null,"anys":null,"bytes":null,"amount":null,"port":5,"limits":{"cpu":3},"float":1e3}`,
		`{"number":12345678901234567890.10}`, `{"number":"5"}`, `{"number":"x"}`, `{"number":null}`,
		`{"port":true}`, `{"array":"x"}`, `[]`, `null`, `{"quoted":5}`, `{"float":1e999}`, `{"any":1e999}`, `{"numbers":{"x":"y"}}`,
		`{"metadata":{"name":"\ud83d\ude00\u0000\n"},"spec":{"priority":1.0}}`, `{"amount":1}`, `{"amount":-0.5}`,
		`{"metadata":{"creationTimestamp":"2020-02-30T00:00:00Z"}}`, `{"metadata":{"creationTimestamp":5}}`,
		`{"metadata":{"creationTimestamp":"2020-01-01t00:00:00.5+02:00","deletionTimestamp":"2020-01-01T00:00:00Z"}}`,
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":null,"\u006demory":"1Gi","x":1},"requests":{}}}]}}`,
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":true}}}]}}`, `{"spec":{"overhead":[]}}`, ` { "spec" : { "overhead" : { "cpu" : "5" } , "containers" : [ ] } } `,
		`{"metadata":{"labels":{"a":null,"\u0062":"c\n","d":"e"},"annotations":{}}}`, `{"metadata":{"labels":{"a":1}}}`, `{"metadata":{"labels":[]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !jsontext.Value(raw).IsValid() || jsontext.Value(raw).Kind() != '{' {
			return // the wire refuses it
		}
		compareDecoders(t, raw, func() runtime.Object { return &corev1.Pod{} })
		compareDecoders(t, raw, func() runtime.Object { return &oddities{} })
		compareDecoders(t, raw, func() runtime.Object { return &unstructured.Unstructured{} })
	})
}

func compareDecoders(t *testing.T, raw []byte, empty func() runtime.Object) {
	t.Helper()
	want := empty()
	var wantErr error
	if u, ok := want.(*unstructured.Unstructured); ok {
		wantErr = kjson.Unmarshal(raw, &u.Object)
	} else {
		wantErr = kjson.Unmarshal(raw, want)
	}
	got, err := decodeAs(want, raw)
	switch {
	case (err != nil) != (wantErr != nil):
		t.Fatalf("%T from %s: got error %v, Kubernetes' decoder %v", want, raw, err, wantErr)
	case err == nil && !reflect.DeepEqual(got, want):
		t.Fatalf("%T from %s: got\n%#v\nKubernetes' decoder\n%#v", want, raw, got, want)
	}
}

// decodeAs decodes into the type of the prototype.
func decodeAs(prototype runtime.Object, raw []byte) (any, error) {
	if _, ok := prototype.(*unstructured.Unstructured); ok {
		tree, err := Tree(raw)
		if err != nil {
			return nil, err
		}
		return &unstructured.Unstructured{Object: tree.(map[string]any)}, nil
	}
	return For(reflect.TypeOf(prototype).Elem()).New(raw, nil)
}

func TestDecodeIsAsKubernetesDoes(t *testing.T) {
	funcs := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs)
	scheme := runtime.NewScheme()
	random := fuzzer.FuzzerFor(funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme))
	objects := 1500
	if testing.Short() {
		objects /= 20
	}
	for _, empty := range []func() runtime.Object{
		func() runtime.Object { return &corev1.Pod{} },
		func() runtime.Object { return &appsv1.Deployment{} },
		func() runtime.Object { return &corev1.Secret{} },
		func() runtime.Object { return &corev1.Event{} },
		func() runtime.Object { return &networkingv1.NetworkPolicy{} },
		func() runtime.Object { return &rbacv1.ClusterRole{} },
		func() runtime.Object { return &metav1.PartialObjectMetadata{} },
	} {
		for range objects {
			object := empty()
			random.Fill(object)
			raw, err := json.Marshal(object)
			if err != nil {
				continue // a random quantity without a written form
			}
			compareDecoders(t, raw, empty)
			compareDecoders(t, raw, func() runtime.Object { return &unstructured.Unstructured{} })
		}
	}
}

func TestDecodeChoosesTheFastWayForKubernetesTypes(t *testing.T) {
	for _, tc := range []struct {
		name         string
		object       any
		odd, special bool
	}{
		{"pods", corev1.Pod{}, false, false},
		{"deployments", appsv1.Deployment{}, false, false},
		{"types that its successor does not take", struct {
			Words
		}{}, true, false},
		{"types with an any", struct {
			A map[string][]any `json:"a"`
		}{}, false, true},
		{"types with a number", struct {
			A json.Number `json:"a"`
		}{}, false, true},
	} {
		w := typeWalk{seen: map[reflect.Type]bool{}}
		w.walk(reflect.TypeOf(tc.object))
		if special := len(w.unmarshalers) > 0; w.odd != tc.odd || special != tc.special {
			t.Errorf("%s: odd %v, special %v", tc.name, w.odd, special)
		}
	}
}

// A decoded object shares no memory with its input: the input may change, and no string
// keeps it alive.
func TestWhatIsReadOwnsItsMemory(t *testing.T) {
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(3), serializer.NewCodecFactory(runtime.NewScheme()))
	for _, empty := range []func() runtime.Object{
		func() runtime.Object { return &corev1.Pod{} },
		func() runtime.Object { return &corev1.Secret{} },
		func() runtime.Object { return &appsv1.Deployment{} },
		func() runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{"a": "b", "c": []any{"d"}}}
		},
		func() runtime.Object { return filled() },
		func() runtime.Object {
			return &oddities{Case: "a", Raw: json.RawMessage(`"b"`), Any: "c", Fields: &metav1.FieldsV1{Raw: []byte(`"d"`)}} //nolint:staticcheck // the field itself is decoded
		},
	} {
		for range 50 {
			object := empty()
			switch object.(type) {
			case *corev1.Pod, *corev1.Secret, *appsv1.Deployment:
				random.Fill(object)
			}
			raw, err := json.Marshal(object)
			if err != nil {
				continue
			}
			want, err := decodeAs(object, bytes.Clone(raw))
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeAs(object, raw)
			if err != nil {
				t.Fatal(err)
			}
			for i := range raw {
				raw[i] = '#'
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%T changed with the bytes that it was read from", object)
			}
		}
	}
}
