// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/serving"
)

type hubHat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Size string `json:"size"`
}

type spokeHat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Width string `json:"width"`
}

func (h *hubHat) DeepCopyObject() runtime.Object   { c := *h; return &c }
func (h *spokeHat) DeepCopyObject() runtime.Object { c := *h; return &c }

func (*hubHat) Hub() {}

func (h *spokeHat) ConvertTo(dst conversion.Hub) error {
	hub := dst.(*hubHat)
	hub.ObjectMeta, hub.Size = h.ObjectMeta, h.Width
	return nil
}

func (h *spokeHat) ConvertFrom(src conversion.Hub) error {
	hub := src.(*hubHat)
	h.ObjectMeta, h.Width = hub.ObjectMeta, hub.Size
	return nil
}

// Default also makes a webhook of the spoke.
func (h *spokeHat) Default(context.Context, runtime.Object) error { return nil }

var hat = schema.GroupKind{Group: "hats.example.com", Kind: "Hat"}

func hats(versions ...string) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, version := range versions {
		var object runtime.Object = &spokeHat{}
		if version == "v1" {
			object = &hubHat{}
		}
		scheme.AddKnownTypeWithName(hat.WithVersion(version), object)
	}
	return scheme
}

const hatReview = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"hats.example.com/v1",
	"objects":[{"apiVersion":"hats.example.com/v2","kind":"Hat","metadata":{"name":"h"},"width":"7"}]}}`

func TestConvertersAreServedAtConvert(t *testing.T) {
	scheme := hats("v1", "v2")
	for name, options := range map[string][]Option{
		"given":              {WithConverters(conversion.HubAndSpokes[*hubHat](scheme))},
		"derived from types": {WithTypes(scheme, &hubHat{}, Type{Implementation: &spokeHat{}, Resource: "hats"})},
	} {
		t.Run(name, func(t *testing.T) {
			app, err := New("hats", options...)
			if err != nil {
				t.Fatal(err)
			}
			if got := app.Converters(); len(got) != 1 || got[0].CRD() != "hats.hats.example.com" {
				t.Errorf("got %v", got)
			}
			if len(app.Webhooks()) != strings.Count(name, "types") {
				t.Errorf("webhooks %v", app.Webhooks())
			}
			options := serving.DefaultOptions()
			handler, err := app.Handler(options)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodPost, "/convert?timeout=30s", strings.NewReader(hatReview))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"size":"7"`) || !strings.Contains(w.Body.String(), `"status":"Success"`) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

// The API server of Kubernetes 1.37 sends one object per call; others may send a list.
func TestAListAboveTheBodyLimitIsRefusedAndBelowConverted(t *testing.T) {
	app, err := New("hats", WithConverters(conversion.HubAndSpokes[*hubHat](hats("v1", "v2"))))
	if err != nil {
		t.Fatal(err)
	}
	object := `{"apiVersion":"hats.example.com/v2","kind":"Hat","metadata":{"name":"h"},"width":"` + strings.Repeat("7", 100<<10) + `"}`
	const count = 50 << 20 / (100 << 10) // 50 MB in all
	review := strings.Replace(hatReview, hatReview[strings.Index(hatReview, `[{`)+1:strings.LastIndex(hatReview, `]}`)],
		strings.Repeat(object+",", count-1)+object, 1)
	usual := serving.DefaultOptions()
	large := usual
	large.MaxBodyBytes, large.MaxBytesInFlight = 64<<20, 192<<20
	for name, tc := range map[string]struct {
		options serving.Options
		body    io.Reader
		code    int
		says    string
	}{
		"above the limit":                    {usual, strings.NewReader(review), http.StatusRequestEntityTooLarge, "8388608 bytes"},
		"above the limit, of unknown length": {usual, io.MultiReader(strings.NewReader(review)), http.StatusRequestEntityTooLarge, "8388608 bytes"},
		"below a limit that was raised":      {large, strings.NewReader(review), http.StatusOK, `"status":"Success"`},
	} {
		t.Run(name, func(t *testing.T) {
			handler, err := app.Handler(tc.options)
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewTLSServer(handler)
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/convert?timeout=30s", tc.body)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			answer, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != tc.code || !strings.Contains(string(answer), tc.says) {
				t.Errorf("got %d %.200s", response.StatusCode, answer)
			}
			if got := strings.Count(string(answer), `"size":"7`); tc.code == http.StatusOK && got != count {
				t.Errorf("%d objects of %d", got, count)
			}
		})
	}
}

func TestProblemsAboutConverters(t *testing.T) {
	scheme := hats("v1", "v2")
	good := conversion.HubAndSpokes[*hubHat](scheme)
	atConvert := admission.Mutating("a.hats.example.com", admission.Rules(hat.WithVersion("v1").GroupVersion().WithResource("hats")),
		admission.Mutate(func(context.Context, *hubHat) error { return nil }, admission.ForKind(hat.WithVersion("v1"))), admission.AtPath("/convert"))
	for name, tc := range map[string]struct {
		options []Option
		want    string
	}{
		"empty":                    {[]Option{WithConverters(conversion.Converter{})}, "the converter is empty"},
		"two for a kind":           {[]Option{WithConverters(good, good)}, "two converters are for kind Hat.hats.example.com: number 1 and number 2"},
		"given and derived":        {[]Option{WithConverters(good), WithTypes(scheme, &hubHat{})}, "two converters are for kind"},
		"a webhook at the path":    {[]Option{WithConverters(good), WithWebhooks(atConvert)}, "/convert is that of the converters"},
		"a version without a path": {[]Option{WithConverters(conversion.APIVersionOnly(hat, "v1", "v2")), WithScheme(hats("v1", "v2", "v3"))}, "no path from and to version v3: it converts v1, v2"},
		"types without hub":        {[]Option{WithTypes(hats("v2"), &spokeHat{})}, "exactly one must be the hub"},
		"a type that is nothing":   {[]Option{WithTypes(scheme, &metav1.PartialObjectMetadata{})}, "is neither a conversion.Hub nor a conversion.Convertible"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New("hats", tc.options...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
}
