// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const metadata = `{"name":"t","namespace":"ns","uid":"u","resourceVersion":"5","labels":{"l":"1"},"annotations":{"z":"1"},"future":{"n":9007199254740993},"managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]}`

func alpha(hostPort string) string {
	return `{"apiVersion":"example.com/v1alpha1","kind":"Thing","metadata":` + metadata + `,"hostPort":"` + hostPort + `"}`
}

// sameJSON compares two documents, numbers by their text.
func sameJSON(t *testing.T, got []byte, want string) {
	t.Helper()
	var trees [2]any
	for i, document := range []string{string(got), want} {
		decoder := json.NewDecoder(strings.NewReader(document))
		decoder.UseNumber()
		if err := decoder.Decode(&trees[i]); err != nil {
			t.Fatalf("%s: %v", document, err)
		}
	}
	if diff := cmp.Diff(trees[1], trees[0]); diff != "" {
		t.Errorf("got %s\n%s", got, diff)
	}
}

func TestObjectsAreConvertedBetweenAllVersions(t *testing.T) {
	bodies := map[string]string{
		"v1":       `"metadata":` + metadata + `,"host":"h","port":"1","weight":9007199254740993,"free":{"n":9007199254740993,"f":1.5,"b":true,"l":[null,{"<":"&"}]}}`,
		"v2":       `"metadata":` + metadata + `,"at":{"host":"h","port":"1"},"weight":9007199254740993,"free":{"n":9007199254740993,"f":1.5,"b":true,"l":[null,{"<":"&"}]}}`,
		"v1alpha1": `"metadata":` + strings.Replace(metadata, `{"z":"1"}`, `{"example.com/weight":"9007199254740993","z":"1"}`, 1) + `,"hostPort":"h:1","free":{"n":9007199254740993,"f":1.5,"b":true,"l":[null,{"<":"&"}]}}`,
	}
	for name, converter := range converters(t) {
		if versions := converter.Versions(); !cmp.Equal(versions, all) || converter.CRD() != "things.example.com" {
			t.Errorf("%s is for %s, %v", name, converter.CRD(), versions)
		}
		for _, from := range all {
			for _, to := range all {
				t.Run(name+" from "+from+" to "+to, func(t *testing.T) {
					object := func(version string) string {
						return `{"apiVersion":"example.com/` + version + `","kind":"Thing",` + bodies[version]
					}
					raw := []byte(object(from))
					got, err := converter.Convert(t.Context(), raw, to)
					if err != nil {
						t.Fatal(err)
					}
					sameJSON(t, got, object(to))
					if from == to && string(got) != object(from) {
						t.Errorf("the same version is not as it was: %s", got)
					}
					if string(raw) != object(from) {
						t.Errorf("the input was changed: %s", raw)
					}
					again, err := converter.Convert(t.Context(), raw, to)
					if err != nil || string(again) != string(got) {
						t.Errorf("the second time it is %s, %v", again, err)
					}
					lost, err := converter.RoundTrip(t.Context(), raw, to)
					if err != nil || len(lost) > 0 {
						t.Errorf("round trip: %v, %v", lost, err)
					}
				})
			}
		}
	}
}

func TestWhatAConverterDoesToMetadata(t *testing.T) {
	for name, converter := range converters(t) {
		for hostPort, tc := range map[string]struct{ metadata, err string }{
			"labels:1":    {metadata: strings.Replace(metadata, `{"l":"1"}`, `{"a":"1","b":"<2>"}`, 1)},
			"finalizes:1": {metadata: metadata},
			"renames:1":   {err: "the converter has changed metadata.name, which must stay"},
			"moves:1":     {err: "the converter has changed metadata.namespace, which must stay"},
			"reissues:1":  {err: "the converter has changed metadata.uid, which must stay"},
			"forgets:1":   {err: "the converter has lost metadata.name: let it copy the metadata of the object"},
			"broken:1":    {err: "metadata.labels: a key or a value is not valid UTF-8"},
			"fails:1":     {err: "hostPort is not one of ours"},
			"panics:1":    {err: "the converter panicked"},
		} {
			t.Run(name+" "+hostPort, func(t *testing.T) {
				got, err := converter.Convert(t.Context(), []byte(alpha(hostPort)), "v1")
				if tc.err != "" {
					if err == nil || err.Error() != tc.err {
						t.Errorf("got %s, %v", got, err)
					}
					var panicked *PanicError
					if errors.As(err, &panicked) != (hostPort == "panics:1") {
						t.Errorf("a %T", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				host, port, _ := strings.Cut(hostPort, ":")
				sameJSON(t, got, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":`+tc.metadata+`,"host":"`+host+`","port":"`+port+`"}`)
			})
		}
	}
}

func TestMetadataAreCarriedOverAsTheyCame(t *testing.T) {
	converter := HubAndSpokes[*hubThing](things(all...))
	for name, tc := range map[string]struct{ in, weight, out string }{
		"untouched with white space":    {`{ "name" : "t", "labels":{"a":"1"} , "x":1e1}`, "0", `{ "name" : "t", "labels":{"a":"1"} , "x":1e1}`},
		"an annotation more":            {`{"name":"t","annotations":{"z":"1"},"x":1e1}`, "1", `{"name":"t","x":1e1,"annotations":{"example.com/weight":"1","z":"1"}}`},
		"first annotation":              {`{"name":"t"}`, "1", `{"name":"t","annotations":{"example.com/weight":"1"}}`},
		"nothing else":                  {`{}`, "1", `{"annotations":{"example.com/weight":"1"}}`},
		"null annotations":              {`{"annotations":null,"name":"t"}`, "0", `{"annotations":null,"name":"t"}`},
		"labels and annotations alone":  {`{"annotations":{},"labels":{"a":"1"}}`, "1", `{"labels":{"a":"1"},"annotations":{"example.com/weight":"1"}}`},
		"annotations before labels":     {`{"annotations":{} , "labels" : {"a":"1"} , "name":"t"}`, "1", `{"name":"t","labels":{"a":"1"},"annotations":{"example.com/weight":"1"}}`},
		"escaped names":                 {`{"\u0061nnotations":{},"n\u0061me":"t"}`, "1", `{"n\u0061me":"t","annotations":{"example.com/weight":"1"}}`},
		"managed fields between":        {`{"labels":{"b":"1"},"managedFields":[{"manager":"m"}],"annotations":{}}`, "1", `{"managedFields":[{"manager":"m"}],"labels":{"b":"1"},"annotations":{"example.com/weight":"1"}}`},
		"managed fields without entry":  {`{"managedFields":[]}`, "0", `{"managedFields":[]}`},
		"a comma at the end of a value": {`{"name":"t,","annotations":{},"x":" ,"}`, "1", `{"name":"t,","x":" ,","annotations":{"example.com/weight":"1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := converter.Convert(t.Context(), []byte(`{"metadata":`+tc.in+`,"weight":`+tc.weight+`,"kind":"Thing","apiVersion":"example.com/v1"}`), "v1alpha1")
			want := `{"apiVersion":"example.com/v1alpha1","kind":"Thing","metadata":` + tc.out + `,"hostPort":":"}`
			if err != nil || string(got) != want {
				t.Errorf("got  %s, %v\nwant %s", got, err, want)
			}
		})
	}
}

func TestAPIVersionOnlyReplacesOneValue(t *testing.T) {
	converter := APIVersionOnly(thing, "v1", "v1beta1")
	if err := converter.Problems(); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"x":1e400}`:         `{"apiVersion":"example.com/v1beta1","kind":"Thing","metadata":{"name":"t"},"x":1e400}`,
		`{ "x":{"apiVersion":"y"},"kind":"Thing","metadata":{},"apiVersion" : "example.com\/v1" }`: `{ "x":{"apiVersion":"y"},"kind":"Thing","metadata":{},"apiVersion" : "example.com/v1beta1" }`,
	} {
		got, err := converter.Convert(t.Context(), []byte(in), "v1beta1")
		if err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	if converter.New("v1") != nil {
		t.Error("it has a Go type")
	}
}

func TestObjectsThatCannotBeConverted(t *testing.T) {
	object := func(apiVersion, rest string) string {
		return `{"apiVersion":"` + apiVersion + `","kind":"Thing"` + rest + `}`
	}
	const hunter = `,"metadata":{"name":"t"},"hostPort":`
	for name, tc := range map[string]struct{ raw, version, want string }{
		"no object":                  {`[1]`, "v1", "the object, or its metadata, is not a JSON object"},
		"no JSON":                    {`{"a":hunter2}`, "v1", "the object is not valid JSON at byte 5"},
		"a name twice":               {`{"hunter2":1,"hunter2":1}`, "v1", "the object is not valid JSON at byte 13"},
		"invalid UTF-8":              {"{\"a\":\"hunter2\xff\"}", "v1", "the object is not valid JSON at byte 13"},
		"two objects":                {`{} {}`, "v1", "there is more behind the end of the object"},
		"a kind that is a number":    {`{"kind":1}`, "v1", "kind is not a string"},
		"a name that is a number":    {object("example.com/v1", `,"metadata":{"name":1}`), "v1", "metadata.name is not a string"},
		"no metadata":                {object("example.com/v1", ""), "v2", "has no metadata"},
		"metadata null":              {object("example.com/v1", `,"metadata":null`), "v2", "has no metadata"},
		"another group":              {object("another/v1", `,"metadata":{}`), "v2", "is a Thing of group another: this converter is for Thing.example.com"},
		"the core group":             {object("v1", `,"metadata":{}`), "v2", "is a Thing of group : this converter is for Thing.example.com"},
		"a version that is unknown":  {object("example.com/v9", `,"metadata":{}`), "v2", `has version "v9", which has no converter: want one of v1, v1alpha1, v2`},
		"a wish that is unknown":     {object("example.com/v1", `,"metadata":{}`), "v9", `there is no converter to version "v9": there are v1, v1alpha1, v2`},
		"a long version":             {object("example.com/"+strings.Repeat("v", 64), `,"metadata":{}`), "v2", "has version (64 bytes), which has no converter: want one of v1, v1alpha1, v2"},
		"a field of another type":    {object("example.com/v1alpha1", hunter+`{"hunter2":1}`), "v1", "cannot be decoded as conversion.alphaThing: /hostPort: expected a string, found an object"},
		"labels of another type":     {object("example.com/v1alpha1", `,"metadata":{"labels":{"a":"1","hunter2":2}}`), "v1", "cannot be decoded as conversion.alphaThing: /metadata/labels/hunter2: expected a string, found a number"},
		"an invalid time":            {object("example.com/v1alpha1", `,"metadata":{"creationTimestamp":"hunter2"}`), "v1", "cannot be decoded as conversion.alphaThing: /metadata/creationTimestamp: expected a Time, found a string"},
		"a number out of range":      {object("example.com/v1", `,"metadata":{},"weight":9223372036854775808`), "v2", "cannot be decoded as conversion.hubThing: /weight: expected an integer of type int64, found a number"},
		"a free number out of range": {object("example.com/v1", `,"metadata":{},"free":{"a":1e999}`), "v2", "cannot be decoded as conversion.hubThing: /free/a: expected another value"},
	} {
		t.Run(name, func(t *testing.T) {
			converter := HubAndSpokes[*hubThing](things(all...))
			got, err := converter.Convert(t.Context(), []byte(tc.raw), tc.version)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestProblemsOfAConverter(t *testing.T) {
	nothing := func(context.Context, *unstructured.Unstructured, string) error { return nil }
	both := func(context.Context, *twoThing, *hubThing) error { return nil }
	back := func(context.Context, *hubThing, *twoThing) error { return nil }
	sparse := things("v1")
	sparse.AddKnownTypeWithName(thing.WithVersion("v3"), &metav1.PartialObjectMetadata{})
	for name, tc := range map[string]struct {
		converter Converter
		want      string
	}{
		"nothing at all":                {Converter{}, "the converter is empty"},
		"no scheme":                     {HubAndSpokes[*hubThing](nil), "the scheme is missing"},
		"a hub that is not there":       {HubAndSpokes[*hubThing](things("v2")), "is not in the scheme"},
		"one version":                   {HubAndSpokes[*hubThing](things("v1")), "there is one version, v1: nothing to convert"},
		"a version without methods":     {HubAndSpokes[*hubThing](sparse), "version v3: *v1.PartialObjectMetadata has no methods ConvertTo"},
		"no hub":                        {ForKind(things("v1alpha1", "v2"), &twoThing{}), "exactly one must be the hub, with a method Hub(); there are 0"},
		"a missing spoke":               {Functions(things(all...), NewSpoke(both, back)), "version v1alpha1 of the scheme is neither the hub nor a spoke"},
		"a missing function":            {Functions(things("v1", "v2"), NewSpoke[*twoThing, *hubThing](both, nil)), "both functions are needed"},
		"a spoke twice":                 {Functions(things("v1", "v2"), NewSpoke(both, back), NewSpoke(both, back)), "version v2 is given twice"},
		"an interface for a type":       {Functions[runtime.Object](things("v1", "v2")), "runtime.Object is not a pointer to a struct"},
		"objects without function":      {Objects(things("v1", "v2"), thing, nil), "the scheme and the function are needed"},
		"unstructured without versions": {Unstructured(thing, nil, nothing), "there is one version, : nothing to convert"},
		"unstructured without function": {Unstructured(thing, all, nil), "the function that converts is missing"},
		"no group":                      {APIVersionOnly(schema.GroupKind{Kind: "Thing"}, "v1", "v2"), "group and kind are needed"},
		"an invalid version":            {APIVersionOnly(thing, "v1", "2"), `version "2": `},
		"an invalid plural":             {APIVersionOnly(thing, "v1", "v2").WithPlural("Things"), `plural "Things": `},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.converter.Problems(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
	converter := APIVersionOnly(thing, "v1", "v2")
	if err := converter.Covers("v2", "v1"); err != nil {
		t.Error(err)
	}
	if err := converter.Covers("v1", "v3", "v4"); err == nil || !strings.Contains(err.Error(), "no path from and to version v3, v4") {
		t.Error(err)
	}
}

func TestRoundTripsTellWhatIsLostByPath(t *testing.T) {
	raw := `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t","labels":{}},"host":"a:b","port":"c","unknown":{"hunter2":1},"free":{"a/b":[1,2.0],"c":null}}`
	lost, err := HubAndSpokes[*hubThing](things(all...)).RoundTrip(t.Context(), []byte(raw), "v1alpha1")
	want := []Difference{{"/host", "changed"}, {"/port", "changed"}, {"/unknown", "lost"}}
	if err != nil || !cmp.Equal(lost, want) {
		t.Errorf("got %v, %v", lost, err)
	}
	converter := Unstructured(thing, []string{"v1", "v2"}, func(_ context.Context, object *unstructured.Unstructured, version string) error {
		if version == "v1" {
			object.Object["list"] = []any{int64(1), map[string]any{"a/~": "2"}, "more"}
			object.Object["new"] = true
			object.Object["object"] = "text"
			object.Object["none"] = []any{}
		}
		return nil
	})
	lost, err = converter.RoundTrip(t.Context(), []byte(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{},"list":[1.0,{"a/~":1}],"object":{},"none":[1]}`), "v2")
	want = []Difference{{"/list/1/a~1~0", "changed"}, {"/list/2", "added"}, {"/new", "added"}, {"/none/0", "lost"}, {"/object", "changed"}}
	if err != nil || !cmp.Equal(lost, want) {
		t.Errorf("got %v, %v", lost, err)
	}
	if want[0].String() != "/list/1/a~1~0 changed" {
		t.Error(want[0])
	}
}

func TestStashesThatDoNotFitAnyMoreAreNotRestored(t *testing.T) {
	shared := map[string]string{"mine": "1"}
	object := &hubThing{ObjectMeta: metav1.ObjectMeta{Annotations: shared}}
	if err := Stash(object, stashed, []int{1, 2}); err != nil || len(shared) != 1 {
		t.Fatalf("%v, the other object's annotations are %v", err, shared)
	}
	numbers := []int{7}
	if !Restore(object, stashed, &numbers) || !cmp.Equal(numbers, []int{1, 2}) || len(object.Annotations) != 1 {
		t.Errorf("got %v, annotations %v", numbers, object.Annotations)
	}
	if Restore(object, stashed, &numbers) {
		t.Error("restored twice")
	}
	object.Annotations = map[string]string{stashed: `[1,"hunter2"]`}
	if Restore(object, stashed, &numbers) || !cmp.Equal(numbers, []int{1, 2}) || object.Annotations != nil {
		t.Errorf("got %v, annotations %v", numbers, object.Annotations)
	}
	if err := Stash(object, stashed, func() {}); err == nil {
		t.Error("a func was kept")
	}
}

func TestNewMakesObjectsOfAVersion(t *testing.T) {
	converter := HubAndSpokes[*hubThing](things(all...))
	two, ok := converter.New("v2").(*twoThing)
	if !ok || two.APIVersion != "example.com/v2" || two.Kind != "Thing" || converter.New("v9") != nil {
		t.Errorf("got %+v", two)
	}
}
