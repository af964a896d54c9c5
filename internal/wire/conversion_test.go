// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/json/rawobject"
)

var cronTabKind = schema.GroupKind{Group: "stable.example.com", Kind: "CronTab"}

// converting is a Conversion with its log and its metrics.
type converting struct {
	*Conversion
	log     bytes.Buffer
	metrics *Metrics
}

// serveConversion converts CronTabs, whose content says what goes wrong, and Shirts.
func serveConversion(tb testing.TB) *converting {
	tb.Helper()
	s := &converting{}
	var err error
	if s.metrics, err = NewMetrics(prometheus.NewRegistry()); err != nil {
		tb.Fatal(err)
	}
	s.Conversion, err = NewConversion([]conversion.Converter{
		conversion.Unstructured(cronTabKind, []string{"v1", "v1beta1"}, func(_ context.Context, object *unstructured.Unstructured, _ string) error {
			switch object.Object["do"] {
			case "fail":
				return errors.New("spec.cronSpec must have five fields")
			case "panic":
				panic("boom: hunter2")
			case "break":
				var none *unstructured.Unstructured
				none.Object["a"] = 1
			case "rename":
				object.SetName("another")
			case "label":
				object.SetLabels(map[string]string{"a": "b"})
			}
			return nil
		}),
		conversion.APIVersionOnly(schema.GroupKind{Group: "stable.example.com", Kind: "Shirt"}, "v1", "v1beta1"),
	}, ConversionOptions{Logger: slog.New(slog.NewTextHandler(&s.log, nil)), Metrics: s.metrics})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func conversionReviewOf(desired string, objects ...string) string {
	return `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"` + testUID + `","desiredAPIVersion":"` + desired +
		`","objects":[` + strings.Join(objects, ",") + `]},"response":null}`
}

func crontab(name, rest string) string {
	return `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"` + name + `","namespace":"default"}` + rest + `}`
}

const beta = "stable.example.com/v1beta1"

func (s *converting) answer(tb testing.TB, body string) (int, apiextensionsv1.ConversionReview, string) {
	tb.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, post(body))
	var review apiextensionsv1.ConversionReview
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
			tb.Fatalf("%s: %v", w.Body, err)
		}
		if w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) || w.Header().Get("Content-Type") != "application/json" {
			tb.Errorf("header %v", w.Header())
		}
	}
	return w.Code, review, w.Body.String()
}

func TestObjectsOfAReviewAreConverted(t *testing.T) {
	null := `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"labels":null,"name":"a"},"do":"label"}`
	labelled := `{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"a","labels":{"a":"b"}},"do":"label"}`
	shirt := `{"apiVersion":"stable.example.com/v1","kind":"Shirt","metadata":{}}`
	for name, tc := range map[string]struct{ objects, want []string }{
		"none":                        {nil, nil},
		"one":                         {[]string{crontab("a", "")}, []string{strings.Replace(crontab("a", ""), "/v1", "/v1beta1", 1)}},
		"several kinds in order":      {[]string{shirt, crontab("a", ""), shirt}, []string{strings.Replace(shirt, "/v1", "/v1beta1", 1), strings.Replace(crontab("a", ""), "/v1", "/v1beta1", 1), strings.Replace(shirt, "/v1", "/v1beta1", 1)}},
		"labels in the place of null": {[]string{null}, []string{labelled}},
	} {
		for _, version := range []string{conversionV1, conversionV1beta1} {
			t.Run(name+", "+version, func(t *testing.T) {
				s := serveConversion(t)
				code, review, body := s.answer(t, strings.Replace(conversionReviewOf(beta, tc.objects...), conversionV1, version, 1))
				if code != http.StatusOK || review.APIVersion != version || review.Kind != "ConversionReview" || review.Response == nil ||
					review.Response.UID != testUID || review.Response.Result.Status != metav1.StatusSuccess || review.Request != nil {
					t.Fatalf("got %d %s", code, body)
				}
				if len(review.Response.ConvertedObjects) != len(tc.want) {
					t.Fatalf("got %s", body)
				}
				for i, want := range tc.want {
					if got := string(review.Response.ConvertedObjects[i].Raw); got != want {
						t.Errorf("object %d is %s\nwant %s", i, got, want)
					}
				}
				if s.log.Len() > 0 {
					t.Errorf("logged: %s", &s.log)
				}
			})
		}
	}
}

func TestAnObjectThatFailsFailsTheReview(t *testing.T) {
	good := crontab("good", "")
	for name, tc := range map[string]struct {
		body, want, logged string
	}{
		"the converter says why":      {conversionReviewOf(beta, good, crontab("a", `,"do":"fail"`), good), `object 1, CronTab "default/a": spec.cronSpec must have five fields`, "five fields"},
		"the converter panics":        {conversionReviewOf(beta, crontab("a", `,"do":"panic","password":"hunter2"`)), `object 0, CronTab "default/a": the converter panicked`, "boom: [value of an object]"},
		"the converter is wrong":      {conversionReviewOf(beta, crontab("a", `,"do":"break"`)), `object 0, CronTab "default/a": the converter panicked`, "nil pointer"},
		"the converter renames":       {conversionReviewOf(beta, good, good, crontab("a", `,"do":"rename"`)), `object 2, CronTab "default/a": the converter has changed metadata.name, which must stay`, "metadata.name"},
		"no metadata":                 {conversionReviewOf(beta, `{"apiVersion":"stable.example.com/v1","kind":"CronTab"}`), `object 0, CronTab "": has no metadata`, "metadata"},
		"metadata that are a list":    {conversionReviewOf(beta, `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":["hunter2"]}`), `object 0, CronTab "": has no metadata`, "metadata"},
		"something else":              {conversionReviewOf(beta, `"hunter2"`), `object 0, object "": is not a JSON object`, "object"},
		"a number out of range":       {conversionReviewOf(beta, crontab("a", `,"x":1e999`)), `object 0, CronTab "default/a": cannot be decoded: at byte 105: the number is out of range`, "range"},
		"another kind":                {conversionReviewOf(beta, `{"apiVersion":"stable.example.com/v1","kind":"Hat","metadata":{}}`), `object 0, Hat "": there is no converter for kind "Hat" of group "stable.example.com" here: correct the conversion of its CustomResourceDefinition`, "Hat"},
		"a kind that is a number":     {conversionReviewOf(beta, `{"apiVersion":"stable.example.com/v1","kind":7,"metadata":{}}`), `object 0, object "": there is no converter for kind "" of group "stable.example.com" here: correct the conversion of its CustomResourceDefinition`, "kind"},
		"another group":               {conversionReviewOf("hats.example.com/v1", good), `object 0, CronTab "default/good": its group is "stable.example.com", and the wanted version is "hats.example.com/v1"`, "group"},
		"the version that it has":     {conversionReviewOf("stable.example.com/v1", good), `object 0, CronTab "default/good": it has the wanted version "stable.example.com/v1" already: an API server converts no such object`, "it has"},
		"a version that is unknown":   {conversionReviewOf("stable.example.com/v9", good), `object 0, CronTab "default/good": there is no converter to version "v9": there are v1, v1beta1`, "v9"},
		"an unknown source version":   {conversionReviewOf(beta, strings.Replace(good, "/v1", "/v9", 1)), `object 0, CronTab "default/good": has version "v9", which has no converter: want one of v1, v1beta1`, "v9"},
		"no wanted version":           {conversionReviewOf("", good), "the ConversionReview's request has no desiredAPIVersion", ""},
		"objects that are not a list": {strings.Replace(conversionReviewOf(beta), "[]", `"hunter2"`, 1), "the body is not a ConversionReview: expected a list for request.objects at byte ", ""},
		"a name twice in an object":   {conversionReviewOf(beta, crontab("a", `,"hunter2":1,"hunter2":2`)), "the body is not a ConversionReview: a name that its object has before at byte ", ""},
		"an object nested too deep":   {conversionReviewOf(beta, crontab("a", `,"x":`+nested(256, "1"))), "the body is not a ConversionReview: nested deeper than 256 levels at byte ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveConversion(t)
			code, review, body := s.answer(t, tc.body)
			if code != http.StatusOK || review.APIVersion != conversionV1 || review.Kind != "ConversionReview" || review.Response == nil || review.Response.UID != testUID ||
				review.Response.Result.Status != metav1.StatusFailure || len(review.Response.ConvertedObjects) > 0 {
				t.Fatalf("got %d %s", code, body)
			}
			if got := review.Response.Result.Message; got != tc.want && (!strings.HasSuffix(tc.want, " at byte ") || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if strings.Contains(body, "hunter2") || strings.Contains(s.log.String(), "hunter2") {
				t.Errorf("shows content: %s\n%s", body, &s.log)
			}
			if !strings.Contains(s.log.String(), tc.logged) || (s.log.Len() > 0) != (tc.logged != "") {
				t.Errorf("logged: %s", &s.log)
			}
		})
	}
}

func TestWhatIsNoConversionReviewIsAnHTTPError(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		code int
		want string
	}{
		"nothing":               {``, 400, "the body is empty"},
		"text":                  {`hello`, 400, "the body is not a ConversionReview: expected an object for the review at byte 0"},
		"an AdmissionReview":    {review(`{"uid":"u"}`), 400, `the body is of kind "AdmissionReview"; send a ConversionReview`},
		"a version to come":     {strings.Replace(conversionReviewOf(beta), conversionV1, "apiextensions.k8s.io/v2", 1), 400, `ConversionReview of version "apiextensions.k8s.io/v2"; send apiextensions.k8s.io/v1 or apiextensions.k8s.io/v1beta1`},
		"no request":            {`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}`, 400, "the ConversionReview has no request"},
		"a null request":        {`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":null}`, 400, "the ConversionReview has no request"},
		"no uid":                {strings.Replace(conversionReviewOf(beta), testUID, "", 1), 400, "the ConversionReview's request has no uid"},
		"half of a review":      {`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"objects":[{`, 400, "the body is not a ConversionReview: the end in the middle"},
		"a broken one, another": {`{"kind":"Hat","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u"},`, 400, `the body is of kind "Hat"; send a ConversionReview`},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, body := serveConversion(t).answer(t, tc.body)
			if code != tc.code || !strings.HasPrefix(body, "conversion: "+tc.want) {
				t.Errorf("got %d %s", code, body)
			}
		})
	}
}

func TestAListOfTooManyObjectsFails(t *testing.T) {
	var body strings.Builder
	body.WriteString(strings.TrimSuffix(conversionReviewOf(beta), `]},"response":null}`))
	body.WriteString(`1`)
	for range maxObjects {
		body.WriteString(`,1`)
	}
	body.WriteString(`]}}`)
	_, review, _ := serveConversion(t).answer(t, body.String())
	if review.Response == nil || !strings.Contains(review.Response.Result.Message, "more than 100000 objects") {
		t.Errorf("got %+v", review.Response)
	}
}

func TestALongListKeepsItsOrder(t *testing.T) {
	objects := make([]string, 5000)
	for i := range objects {
		objects[i] = crontab(fmt.Sprint("n", i), "")
	}
	_, review, _ := serveConversion(t).answer(t, conversionReviewOf(beta, objects...))
	if len(review.Response.ConvertedObjects) != len(objects) {
		t.Fatalf("got %d objects", len(review.Response.ConvertedObjects))
	}
	for i, object := range review.Response.ConvertedObjects {
		if !strings.Contains(string(object.Raw), fmt.Sprintf(`"name":"n%d"`, i)) {
			t.Fatalf("object %d is %s", i, object.Raw)
		}
	}
}

func TestALongMessageIsCut(t *testing.T) {
	s := serveConversion(t)
	s.converters[cronTabKind] = conversion.Unstructured(cronTabKind, []string{"v1", "v1beta1"},
		func(context.Context, *unstructured.Unstructured, string) error {
			return errors.New(strings.Repeat("ü", 10_000))
		})
	_, review, _ := s.answer(t, conversionReviewOf(beta, crontab("a", "")))
	if message := review.Response.Result.Message; len(message) > maxMessage+3 || !strings.HasSuffix(message, "ü...") {
		t.Errorf("%d bytes, ends with %q", len(message), message[len(message)-8:])
	}
}

func TestAConversionThatNobodyWaitsForIsAFault(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := serveConversion(t).Review(ctx, []byte(conversionReviewOf(beta, crontab("a", ""))))
	var fault *Fault
	if !errors.As(err, &fault) || fault.Code != statusClientClosedRequest {
		t.Errorf("got %v", err)
	}
}

func TestConversionsAreCountedByVersions(t *testing.T) {
	s := serveConversion(t)
	s.answer(t, conversionReviewOf(beta, crontab("a", ""), crontab("b", "")))
	s.answer(t, conversionReviewOf(beta, crontab("a", `,"do":"fail"`)))
	s.answer(t, conversionReviewOf("stable.example.com/v9", crontab("a", "")))
	s.answer(t, conversionReviewOf(beta, strings.Replace(crontab("a", ""), "/v1", "/v8", 1)))
	s.answer(t, `{}`)
	count := func(from, to, outcome string) float64 {
		return testutil.ToFloat64(s.metrics.conversions.objects.WithLabelValues("stable.example.com", "CronTab", from, to, outcome))
	}
	for _, tc := range []struct {
		from, to, outcome string
		want              float64
	}{
		{"v1", "v1beta1", "converted", 2}, {"v1", "v1beta1", "failed", 1}, {"v1", "other", "failed", 1}, {"other", "v1beta1", "failed", 1}, {"v1beta1", "v1", "converted", 0},
	} {
		if got := count(tc.from, tc.to, tc.outcome); got != tc.want {
			t.Errorf("%s to %s, %s: %v", tc.from, tc.to, tc.outcome, got)
		}
	}
	for outcome, want := range map[string]float64{"converted": 1, "failed": 3, "rejected": 1, "faulty": 0} {
		if got := testutil.ToFloat64(s.metrics.conversions.reviews.WithLabelValues(outcome)); got != want {
			t.Errorf("%s: %v", outcome, got)
		}
	}
}

func TestNewConversionReportsAllMistakes(t *testing.T) {
	shirts := conversion.APIVersionOnly(schema.GroupKind{Group: "stable.example.com", Kind: "Shirt"}, "v1", "v2")
	_, err := NewConversion([]conversion.Converter{{}, shirts, shirts}, ConversionOptions{})
	if err == nil || !strings.Contains(err.Error(), "the converter is empty") || !strings.Contains(err.Error(), "two converters are for kind Shirt.stable.example.com") {
		t.Errorf("got %v", err)
	}
}

// nested returns a value inside depth alternating arrays and objects.
func nested(depth int, innermost string) string {
	text := innermost
	for i := range depth {
		if i%2 == 0 {
			text = "[" + text + "]"
		} else {
			text = `{"a":` + text + `}`
		}
	}
	return text
}

// FuzzDecodeConversion compares the decoder's view of objects with that of package
// conversion, which uses another decoder.
func FuzzDecodeConversion(f *testing.F) {
	for _, seed := range []string{
		conversionReviewOf(beta, crontab("a", `,"x":1`), crontab("b", "")), conversionReviewOf(beta), `{}`, `[`,
		conversionReviewOf(beta, `{ "metadata" : {"n\u0061me":"t","labels":{},"annotations":null,"managedFields":[ ]} ,"apiVersion":"a\/b","kind":"K"}`),
		conversionReviewOf(beta, `1`, `{"kind":1,"metadata":{"uid":{}}}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeConversion(body)
		if err != nil {
			return
		}
		for i := range got.objects {
			object := got.objects[i]
			want, err := rawobject.Parse(object.Raw)
			if err != nil {
				continue // which is stricter about the types of fields
			}
			if object.APIVersion != want.APIVersion || object.Kind != want.Kind || object.Name != want.Name ||
				object.Namespace != want.Namespace || object.UID != want.UID || object.At != want.At || object.Nulls != want.Nulls {
				t.Errorf("%s: got %+v, want %+v", object.Raw, object, want)
			}
		}
		answer, err := serveConversion(t).Review(t.Context(), body)
		if err != nil || !json.Valid(answer) {
			t.Errorf("%s: answer %s, %v", body, answer, err)
		}
	})
}
