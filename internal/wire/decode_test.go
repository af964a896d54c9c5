// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// review returns a v1 AdmissionReview around a request.
func review(request string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` + request + `}`
}

func TestDecodeReviewReadsARecordedReview(t *testing.T) {
	body := recorded(t, "notebook.json")
	version, got, err := decodeReview(body)
	if err != nil || version != admissionV1 {
		t.Fatalf("got version %q, error %v", version, err)
	}
	var want admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Request, got); diff != "" {
		t.Errorf("encoding/json reads something else:\n%s", diff)
	}
	if got.UserInfo.Groups[0] != "system:serviceaccounts" || !bytes.HasPrefix(got.Object.Raw, []byte(`{"kind":"Pod"`)) {
		t.Errorf("the review is not what this test is about: %+v", got)
	}
}

// This test fails when k8s.io/api gains a field that decodeReview does not read.
func TestDecodeReviewReadsEveryField(t *testing.T) {
	var want admissionv1.AdmissionRequest
	fill(t, reflect.ValueOf(&want).Elem(), "request")
	for _, version := range []string{admissionV1, admissionV1beta1} {
		t.Run(version, func(t *testing.T) {
			body, err := json.Marshal(&admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "AdmissionReview"}, Request: &want,
			})
			if err != nil {
				t.Fatal(err)
			}
			gotVersion, got, err := decodeReview(body)
			if err != nil || gotVersion != version {
				t.Fatalf("got version %q, error %v", gotVersion, err)
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("not read as it was written:\n%s", diff)
			}
		})
	}
}

// One Go type holds both versions of the review, so they must have the same fields at
// every level.
func TestVersionsOfTheReviewHaveTheSameFields(t *testing.T) {
	v1, beta := reflect.TypeFor[admissionv1.AdmissionRequest](), reflect.TypeFor[admissionv1beta1.AdmissionRequest]()
	if v1.NumField() != beta.NumField() {
		t.Fatalf("v1 has %d fields, v1beta1 %d", v1.NumField(), beta.NumField())
	}
	for i := range v1.NumField() {
		a, b := v1.Field(i), beta.Field(i)
		if a.Name != b.Name || a.Tag.Get("json") != b.Tag.Get("json") || a.Type != b.Type && a.Name != "Operation" {
			t.Errorf("v1 has %s %s %q, v1beta1 %s %s %q", a.Name, a.Type, a.Tag, b.Name, b.Type, b.Tag)
		}
	}
}

// fill sets everything below v to distinct values.
func fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	if raw, ok := v.Addr().Interface().(*runtime.RawExtension); ok {
		raw.Raw = []byte(`{"path":"` + path + `"}`)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(path)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 2 {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(t, value, fmt.Sprintf("%s{%d}", path, i))
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key ", i)).Convert(v.Type().Key()), value)
		}
	default:
		t.Fatalf("%s is of kind %s: teach this test about it", path, v.Kind())
	}
}

func TestDecodeReviewTakesNullForNotSet(t *testing.T) {
	want := &admissionv1.AdmissionRequest{UID: "u"}
	for name, request := range map[string]string{
		"nothing but the uid": `{"uid":"u"}`,
		"everything null": `{"uid":"u","kind":null,"resource":null,"subResource":null,"requestKind":null,"requestResource":null,
			"requestSubResource":null,"name":null,"namespace":null,"operation":null,"userInfo":null,"object":null,"oldObject":null,
			"options":null,"dryRun":null}`,
		"everything in the user info null": `{"uid":"u","userInfo":{"username":null,"uid":null,"groups":null,"extra":null}}`,
		"everything in the kind null":      `{"uid":"u","kind":{"group":null,"version":null,"kind":null},"resource":{"resource":null}}`,
		"empty objects":                    `{"uid":"u","kind":{},"resource":{},"userInfo":{"extra":{}}}`,
		"fields that nobody knows":         `{"uid":"u","new":{"uid":[1]},"kind":{"resource":"r","new":1},"resource":{"kind":"k"},"userInfo":{"new":[]}}`,
		"names in another case":            `{"uid":"u","Uid":"v","NAME":"n","dryrun":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, got, err := decodeReview([]byte(review(request)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeReviewReadsStringsWithEscapes(t *testing.T) {
	_, got, err := decodeReview([]byte(review(`{"\u0075id":"\u0075\n","userInfo":{"groups":["a\"b",null,""],
		"extra":{"k\u0065y":["\ud83d\ude00"],"none":null,"empty":[]}},"object": "a\u0062" }`)))
	want := &admissionv1.AdmissionRequest{
		UID: "u\n",
		UserInfo: authenticationv1.UserInfo{
			Groups: []string{`a"b`, "", ""},
			Extra:  map[string]authenticationv1.ExtraValue{"key": {"😀"}, "none": nil, "empty": nil},
		},
		Object: runtime.RawExtension{Raw: []byte(`"a\u0062"`)},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeReviewReadsWordsThatMostReviewsHave(t *testing.T) {
	for _, word := range strings.Fields("v1 Pod pods CREATE UPDATE DELETE CONNECT AdmissionReview " +
		"admission.k8s.io/v1 system:authenticated system:serviceaccounts pod PODS v1beta1") {
		_, req, err := decodeReview([]byte(review(`{"uid":"u","name":"` + word + `"}`)))
		if err != nil || req.Name != word {
			t.Errorf("%s: got %v, %v", word, req, err)
		}
	}
}

func TestDecodeReviewLeavesObjectsAsTheyCame(t *testing.T) {
	for name, raw := range map[string]string{
		"white space stays":         `{ "a" :  1 }`,
		"the order of names stays":  `{"b":1,"a":2}`,
		"large integers stay":       `{"a":9223372036854775807,"b":1e400}`,
		"escapes stay":              `{"\u0061":"\u003c<"}`,
		"an object may be a list":   `[1]`,
		"an object may be a number": `1`,
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(review(`{"uid":"u","object":` + raw + `,"oldObject": ` + raw + ` ,"options":` + raw + `}`))
			_, req, err := decodeReview(body)
			if err != nil {
				t.Fatal(err)
			}
			for field, got := range map[string][]byte{
				"object": req.Object.Raw, "oldObject": req.OldObject.Raw, "options": req.Options.Raw,
			} {
				if string(got) != raw {
					t.Errorf("%s: got %s", field, got)
				}
				if cap(got) != len(got) {
					t.Errorf("%s can grow into what stands behind it", field)
				}
			}
		})
	}
}

func TestDecodeReviewRefuses(t *testing.T) {
	const none = "the body is not an AdmissionReview: "
	long := strings.Repeat("x", 65)
	for name, tc := range map[string]struct{ body, want string }{
		"text":                      {`hello`, none + "expected an object for the review at byte 0"},
		"an array":                  {`[]`, none + "expected an object for the review at byte 0"},
		"null":                      {`null`, `the body is of kind ""; send an AdmissionReview`},
		"an empty object":           {`{}`, `the body is of kind ""; send an AdmissionReview`},
		"an object of another kind": {`{"apiVersion":"v1","kind":"Pod"}`, `the body is of kind "Pod"; send an AdmissionReview`},
		"a long kind":               {`{"kind":"` + long + `"}`, `the body is of kind (65 bytes); send an AdmissionReview`},
		"a kind with a newline":     {`{"kind":"a\nb"}`, `the body is of kind "a\nb"; send an AdmissionReview`},
		"the review of a conversion": {
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u"}}`,
			`the body is of kind "ConversionReview"; send an AdmissionReview`,
		},
		"a version to come": {
			`{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview","request":{"uid":"u"}}`,
			`AdmissionReview of version "admission.k8s.io/v2"; send admission.k8s.io/v1 or admission.k8s.io/v1beta1`,
		},
		"a version of another group": {
			`{"apiVersion":"v1","kind":"AdmissionReview","request":{"uid":"u"}}`,
			`AdmissionReview of version "v1"; send admission.k8s.io/v1 or admission.k8s.io/v1beta1`,
		},
		"no version": {
			`{"kind":"AdmissionReview","request":{"uid":"u"}}`,
			`AdmissionReview of version ""; send admission.k8s.io/v1 or admission.k8s.io/v1beta1`,
		},
		"no request":     {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "the AdmissionReview has no request"},
		"a null request": {review(`null`), "the AdmissionReview has no request"},
		"an answer": {
			`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u"}}`,
			"the AdmissionReview has no request",
		},
		"no uid":                                      {review(`{}`), "the AdmissionReview's request has no uid"},
		"a null uid":                                  {review(`{"uid":null}`), "the AdmissionReview's request has no uid"},
		"an empty uid":                                {review(`{"uid":""}`), "the AdmissionReview's request has no uid"},
		"two reviews":                                 {review(`{"uid":"u"}`) + review(`{"uid":"u"}`), none + "more behind the end at byte "},
		"a null byte at the end":                      {review(`{"uid":"u"}`) + "\x00", none + "more behind the end at byte "},
		"a word that is not null, for a request":      {review(`nil`), none + "expected a value at byte "},
		"a word that is not null, for a string":       {review(`{"uid":nil}`), none + "expected a value at byte "},
		"a word that is not null, for a list":         {review(`{"userInfo":{"groups":nil}}`), none + "expected a value at byte "},
		"a word that is not null, for a kind":         {review(`{"requestKind":nil}`), none + "expected a value at byte "},
		"a word that is not true":                     {review(`{"dryRun":tru}`), none + "expected a value at byte "},
		"two uids":                                    {review(`{"uid":"u","uid":"v"}`), none + "a name that its object has before at byte "},
		"two objects, one with an escape in its name": {review(`{"uid":"u","object":{},"\u006fbject":{}}`), none + "a name that its object has before at byte "},
		"two requests":                                {`{"request":{"uid":"u"},"request":null}`, none + "a name that its object has before at byte "},
		"a name twice in the object":                  {review(`{"uid":"u","object":{"a":1,"a":2}}`), none + "a name that its object has before at byte "},
		"a name twice in what nobody reads":           {review(`{"uid":"u","new":{"a":1,"a":2}}`), none + "a name that its object has before at byte "},
		"invalid UTF-8 in the object":                 {review(`{"uid":"u","object":{"a":"` + "\xff" + `"}}`), none + "invalid UTF-8 in the string at byte "},
		"an object that is nested too deep":           {review(`{"uid":"u","object":` + nested(255, "1") + `}`), none + "nested deeper than 256 levels at byte "},
	} {
		t.Run(name, func(t *testing.T) {
			version, req, err := decodeReview([]byte(tc.body))
			switch {
			case err == nil || req != nil || version != "":
				t.Errorf("got version %q, request %v, error %v", version, req, err)
			case strings.HasSuffix(tc.want, " at byte ") && strings.HasPrefix(err.Error(), tc.want):
			case err.Error() != tc.want:
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
	if _, _, err := decodeReview([]byte(review(`{"uid":"u","object":` + nested(254, "1") + `}`))); err != nil {
		t.Errorf("an object of 254 levels, 256 with the review: %v", err)
	}
}

func TestDecodeReviewNamesTheFieldOfAWrongType(t *testing.T) {
	for path, body := range map[string]string{
		"a string for apiVersion":                       `{"apiVersion":1}`,
		"a string for kind":                             `{"kind":{}}`,
		"an object for request":                         review(`"r"`),
		"a string for request.uid":                      review(`{"uid":1}`),
		"an object for request.kind":                    review(`{"kind":"Pod"}`),
		"a string for request.kind.group":               review(`{"kind":{"group":[]}}`),
		"a string for request.kind.version":             review(`{"kind":{"version":1}}`),
		"a string for request.kind.kind":                review(`{"kind":{"kind":true}}`),
		"an object for request.resource":                review(`{"resource":[]}`),
		"a string for request.resource.resource":        review(`{"resource":{"resource":1}}`),
		"a string for request.subResource":              review(`{"subResource":{}}`),
		"an object for request.requestKind":             review(`{"requestKind":1}`),
		"a string for request.requestKind.kind":         review(`{"requestKind":{"kind":1}}`),
		"an object for request.requestResource":         review(`{"requestResource":1}`),
		"a string for request.requestResource.resource": review(`{"requestResource":{"resource":1}}`),
		"a string for request.requestSubResource":       review(`{"requestSubResource":1}`),
		"a string for request.name":                     review(`{"name":1}`),
		"a string for request.namespace":                review(`{"namespace":false}`),
		"a string for request.operation":                review(`{"operation":1}`),
		"an object for request.userInfo":                review(`{"userInfo":"admin"}`),
		"a string for request.userInfo.username":        review(`{"userInfo":{"username":1}}`),
		"a string for request.userInfo.uid":             review(`{"userInfo":{"uid":1}}`),
		"a list for request.userInfo.groups":            review(`{"userInfo":{"groups":"g"}}`),
		"a string for request.userInfo.groups":          review(`{"userInfo":{"groups":[1]}}`),
		"an object for request.userInfo.extra":          review(`{"userInfo":{"extra":[]}}`),
		"a list for request.userInfo.extra":             review(`{"userInfo":{"extra":{"a":"b"}}}`),
		"a string for request.userInfo.extra":           review(`{"userInfo":{"extra":{"a":[{}]}}}`),
		"true or false for request.dryRun":              review(`{"dryRun":"true"}`),
	} {
		t.Run(path, func(t *testing.T) {
			_, _, err := decodeReview([]byte(body))
			if want := "the body is not an AdmissionReview: expected " + path + " at byte "; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzDecodeReview compares decodeReview with a general decoder that makes the same
// checks. That decoder is case-sensitive like Kubernetes' own, and unlike
// encoding/json. Both must accept the same reviews and read the same values.
func FuzzDecodeReview(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"\u0075","object":null,"dryRun":false}}`,
		review(`{"uid":"u","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"resource":"pods","new":[]},"subResource":"status"}`),
		review(`{"uid":"u","requestKind":null,"requestResource":{"group":"apps"},"requestSubResource":"scale","options":[ 1 ]}`),
		review(`{"uid":"u","userInfo":{"uid":"v","groups":["a",null],"extra":{"a":["b"],"c":null}},"oldObject":{"a":{"b":1}}}`),
		review(`{"uid":"u","uid":"v"}`), review(`{"uid":1}`), review(`{"UID":"u"}`), review(`null`) + "x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		version, req, err := decodeReview(bytes.Clone(body))

		var want struct {
			metav1.TypeMeta `json:",inline"`
			Request         *admissionv1.AdmissionRequest `json:"request"`
		}
		wantErr := jsonv2.Unmarshal(body, &want)
		accepted := wantErr == nil && depthOf(body) <= maxDepth && want.Kind == "AdmissionReview" &&
			(want.APIVersion == admissionV1 || want.APIVersion == admissionV1beta1) && want.Request != nil && want.Request.UID != ""
		if (err == nil) != accepted {
			t.Fatalf("accepted: %t (%v), want %t (%v)\n%q", err == nil, err, accepted, wantErr, body)
		}
		if !accepted {
			return
		}
		if diff := cmp.Diff(want.Request, req, cmpopts.EquateEmpty()); version != want.APIVersion || diff != "" {
			t.Errorf("version %q, want %q\n%s", version, want.APIVersion, diff)
		}
	})
}

// depthOf returns how deep the valid document is nested.
func depthOf(data []byte) int {
	deepest := 0
	for d := jsontext.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.ReadToken(); err != nil {
			return deepest
		}
		deepest = max(deepest, d.StackDepth())
	}
}
