// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	if err := converter.Validate(); err != nil {
		t.Fatal(err)
	}
	got, err := converter.Convert(t.Context(), []byte(`{"apiVersion":"example.com/v1","kind":"Settings","metadata":{"name":"s"},"data":{"a":"1"}}`), "v2")
	if err != nil || string(got) != `{"apiVersion":"example.com/v2","kind":"Settings","metadata":{"name":"s"},"stringData":{"a":"1"}}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAConverterThatCannotBeMadeIsAMistake(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Settings"}
	broken := func(*runtime.Scheme) (ctrlconversion.Converter, error) { return nil, errors.New("no spoke for v3") }
	if err := controllerruntime.Converter(runtime.NewScheme(), kind, broken).Validate(); err == nil || !strings.Contains(err.Error(), "no spoke for v3") {
		t.Errorf("got %v", err)
	}
	if err := controllerruntime.Converter(nil, kind, nil).Validate(); err == nil || !strings.Contains(err.Error(), "are needed") {
		t.Errorf("got %v", err)
	}
}
