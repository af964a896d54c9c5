// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/sallyport-io/sallyport/controllerruntime"
	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1alpha1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
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
	if err := converter.Validate(); err != nil {
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
	if err := controllerruntime.Converter(runtime.NewScheme(), kind, broken).Validate(); err == nil || !strings.Contains(err.Error(), "no spoke for v3") {
		t.Errorf("got %v", err)
	}
	if err := controllerruntime.Converter(nil, kind, nil).Validate(); err == nil || !strings.Contains(err.Error(), "are needed") {
		t.Errorf("got %v", err)
	}
}

// A project that keeps controller-runtime's handler, as its builder registers it, gets the same
// answers from this server.
func TestTheConversionHandlerOfControllerRuntimeIsServed(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	given, roots := options(t)
	server := controllerruntime.NewServer(given)
	server.Register("/convert", ctrlconversion.NewWebhookHandler(scheme, ctrlconversion.NewRegistry()))
	r := start(t, server, given.Port, roots)
	ask := func(object string) (code int, review apiextensionsv1.ConversionReview) {
		code, answer, _ := r.call(t, http.MethodPost, "/convert?timeout=30s", `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",
			"request":{"uid":"the-uid","desiredAPIVersion":"stable.example.com/v1","objects":[`+object+`]}}`)
		if err := json.Unmarshal([]byte(answer), &review); err != nil || review.Response == nil || review.Response.UID != "the-uid" {
			t.Fatalf("got %d %s, %v", code, answer, err)
		}
		return code, review
	}

	code, review := ask(`{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"a"},
		"spec":{"schedule":{"minute":"*/5","hour":"1","dayOfMonth":"*","month":"*","dayOfWeek":"*"}}}`)
	if code != http.StatusOK || review.Response.Result.Status != metav1.StatusSuccess || len(review.Response.ConvertedObjects) != 1 {
		t.Fatalf("got %d %+v", code, review.Response)
	}
	var converted v1.CronTab
	if err := json.Unmarshal(review.Response.ConvertedObjects[0].Raw, &converted); err != nil || converted.Spec.CronSpec != "*/5 1 * * *" {
		t.Errorf("converted to %+v, %v", converted, err)
	}
	if code, review = ask(`{"apiVersion":"stable.example.com/v9","kind":"CronTab","metadata":{"name":"a"}}`); code != http.StatusOK ||
		review.Response.Result.Status != metav1.StatusFailure {
		t.Errorf("an unknown version: %d %+v", code, review.Response)
	}
}
