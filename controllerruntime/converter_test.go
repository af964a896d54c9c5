// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	conversionhub "sigs.k8s.io/controller-runtime/pkg/conversion"
	ctrlconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/sallyport-io/sallyport/controllerruntime"
)

func TestAConverterOfControllerRuntimeConverts(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Settings"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(kind.WithVersion("v1"), &corev1.ConfigMap{})
	scheme.AddKnownTypeWithName(kind.WithVersion("v2"), &corev1.Secret{})
	converter := controllerruntime.Converter(scheme, kind, ctrlconversion.NewHubSpokeConverter(&corev1.ConfigMap{},
		ctrlconversion.NewSpokeConverter(&corev1.Secret{},
			func(_ context.Context, hub *corev1.ConfigMap, spoke *corev1.Secret) error {
				spoke.ObjectMeta, spoke.StringData = hub.ObjectMeta, hub.Data
				return nil
			},
			func(_ context.Context, spoke *corev1.Secret, hub *corev1.ConfigMap) error {
				hub.ObjectMeta, hub.Data = spoke.ObjectMeta, spoke.StringData
				return nil
			})))
	if err := converter.Problems(); err != nil {
		t.Fatal(err)
	}
	got, err := converter.Convert(t.Context(), []byte(`{"apiVersion":"example.com/v1","kind":"Settings","metadata":{"name":"s"},"data":{"a":"1"}}`), "v2")
	if err != nil || string(got) != `{"apiVersion":"example.com/v2","kind":"Settings","metadata":{"name":"s"},"stringData":{"a":"1"}}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAConverterThatCannotBeMadeIsAProblem(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Settings"}
	broken := func(*runtime.Scheme) (ctrlconversion.Converter, error) { return nil, errors.New("no spoke for v3") }
	if err := controllerruntime.Converter(runtime.NewScheme(), kind, broken).Problems(); err == nil || !strings.Contains(err.Error(), "no spoke for v3") {
		t.Errorf("got %v", err)
	}
	if err := controllerruntime.Converter(nil, kind, nil).Problems(); err == nil || !strings.Contains(err.Error(), "are needed") {
		t.Errorf("got %v", err)
	}
}

// A project that keeps controller-runtime's handler, as its builder registers it, gets the same
// answers from this server.
func TestTheConversionHandlerOfControllerRuntimeIsServed(t *testing.T) {
	scheme, _ := convertible(t)
	given, roots := options(t)
	server := controllerruntime.NewServer(given)
	server.Register("/convert", ctrlconversion.NewWebhookHandler(scheme, ctrlconversion.NewRegistry()))
	r := start(t, server, given.Port, roots)
	ask := func(object string) (code int, review apiextensionsv1.ConversionReview) {
		code, answer, _ := r.call(t, http.MethodPost, "/convert?timeout=30s", `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",
			"request":{"uid":"the-uid","desiredAPIVersion":"example.com/v2","objects":[`+object+`]}}`)
		if err := json.Unmarshal([]byte(answer), &review); err != nil || review.Response == nil || review.Response.UID != "the-uid" {
			t.Fatalf("got %d %s, %v", code, answer, err)
		}
		return code, review
	}

	code, review := ask(`{"apiVersion":"example.com/v1","kind":"Settings","metadata":{"name":"a"},"text":"b"}`)
	if code != http.StatusOK || review.Response.Result.Status != metav1.StatusSuccess || len(review.Response.ConvertedObjects) != 1 {
		t.Fatalf("got %d %+v", code, review.Response)
	}
	var converted hub
	if err := json.Unmarshal(review.Response.ConvertedObjects[0].Raw, &converted); err != nil || !slices.Equal(converted.Lines, []string{"b"}) {
		t.Errorf("converted to %+v, %v", converted, err)
	}
	if code, review = ask(`{"apiVersion":"example.com/v9","kind":"Settings","metadata":{"name":"a"}}`); code != http.StatusOK ||
		review.Response.Result.Status != metav1.StatusFailure {
		t.Errorf("an unknown version: %d %+v", code, review.Response)
	}
}

// hub and spoke are two versions of a kind, as kubebuilder projects have them.
type hub struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Lines             []string `json:"lines,omitempty"`
}

func (*hub) Hub() {}

func (h *hub) DeepCopyObject() runtime.Object {
	return &hub{h.TypeMeta, *h.ObjectMeta.DeepCopy(), slices.Clone(h.Lines)}
}

type spoke struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Text              string `json:"text,omitempty"`
}

func (s *spoke) DeepCopyObject() runtime.Object {
	return &spoke{s.TypeMeta, *s.ObjectMeta.DeepCopy(), s.Text}
}

func (s *spoke) ConvertTo(to conversionhub.Hub) error {
	h := to.(*hub)
	h.ObjectMeta, h.Lines = s.ObjectMeta, strings.Split(s.Text, "\n")
	return nil
}

func (s *spoke) ConvertFrom(from conversionhub.Hub) error {
	h := from.(*hub)
	s.ObjectMeta, s.Text = h.ObjectMeta, strings.Join(h.Lines, "\n")
	return nil
}

// convertible returns a scheme that has the spoke as v1 of a kind, and the hub as v2.
func convertible(t *testing.T) (*runtime.Scheme, schema.GroupKind) {
	t.Helper()
	kind := schema.GroupKind{Group: "example.com", Kind: "Settings"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(kind.WithVersion("v1"), &spoke{})
	scheme.AddKnownTypeWithName(kind.WithVersion("v2"), &hub{})
	metav1.AddToGroupVersion(scheme, kind.WithVersion("v1").GroupVersion())
	return scheme, kind
}
