// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	ctrl "github.com/sallyport-io/sallyport/controllerruntime"
)

// Strict is a ConfigMap as API types were before v0.15.
type Strict struct{ corev1.ConfigMap }

func (s *Strict) DeepCopyObject() runtime.Object { return &Strict{*s.DeepCopy()} }

// SetupWebhookWithManager is as kubebuilder wrote it until controller-runtime v0.19.
func (s *Strict) SetupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr).
		For(s).
		Complete()
}

func (s *Strict) Default() { s.Data = map[string]string{"defaulted": s.Namespace} }

func (s *Strict) ValidateCreate() error { return errors.New("create " + s.Name) }

func (s *Strict) ValidateUpdate(old runtime.Object) error {
	return errors.New("update " + old.(*Strict).Name + " to " + s.Name)
}

func (s *Strict) ValidateDelete() error { return errors.New("delete " + s.Name) }

// Chatty is a ConfigMap as API types were before v0.20.
type Chatty struct{ corev1.ConfigMap }

func (c *Chatty) DeepCopyObject() runtime.Object { return &Chatty{*c.DeepCopy()} }

func (c *Chatty) ValidateCreate() (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{"create " + c.Name}, nil
}

func (c *Chatty) ValidateUpdate(old runtime.Object) (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{"update " + old.(*Chatty).Name}, nil
}

func (c *Chatty) ValidateDelete() (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{"delete " + c.Name}, nil
}

// anyObject is a defaulter and validator as they were from v0.15 to v0.22.
type anyObject struct{}

func (anyObject) Default(_ context.Context, object runtime.Object) error {
	object.(*Strict).Data = map[string]string{"custom": ""}
	return nil
}

func (anyObject) ValidateCreate(_ context.Context, object runtime.Object) (ctrladmission.Warnings, error) {
	return nil, errors.New("custom " + object.(*Strict).Name)
}

func (anyObject) ValidateUpdate(context.Context, runtime.Object, runtime.Object) (ctrladmission.Warnings, error) {
	return nil, nil
}

func (anyObject) ValidateDelete(context.Context, runtime.Object) (ctrladmission.Warnings, error) {
	return nil, nil
}

// built returns what a manager serves, which is never started, once its webhooks are set up.
func built(t *testing.T, scheme *runtime.Scheme, setup func(ctrl.Manager) error) (http.Handler, error) {
	t.Helper()
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"}, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: ctrl.NewServer(webhook.Options{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = setup(mgr)
	return mgr.GetWebhookServer().WebhookMux(), err
}

// ask sends a request to the path of a kind to mutate or validate. Nil means that nothing is served there.
func ask(t *testing.T, handler http.Handler, what, kind string, operation admissionv1.Operation) *admissionv1.AdmissionResponse {
	t.Helper()
	path := "/" + what + "--v1-" + strings.ToLower(kind)
	object := runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"n","namespace":"ns"}}`)}
	request := &admissionv1.AdmissionRequest{UID: "u", Operation: operation, Kind: metav1.GroupVersionKind{Version: "v1", Kind: kind}}
	if operation != admissionv1.Delete {
		request.Object = object
	}
	if operation != admissionv1.Create {
		request.OldObject = object
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code == http.StatusNotFound {
		return nil
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Fatalf("%s %s: %v", path, w.Body, err)
	}
	return answer.Response
}

// operations have the text that each of them is answered with.
var operations = map[admissionv1.Operation]string{admissionv1.Create: "create n", admissionv1.Update: "update n", admissionv1.Delete: "delete n"}

func schemeOf(kind string, object runtime.Object) *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind(kind), object)
	return scheme
}

func TestTheLineOfOlderReleasesFindsTheMethodsOfTheType(t *testing.T) {
	handler, err := built(t, schemeOf("Strict", &Strict{}), (&Strict{}).SetupWebhookWithManager)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, handler, "mutate", "Strict", admissionv1.Create); got == nil || !strings.Contains(string(got.Patch), `"defaulted":"ns"`) {
		t.Errorf("default: %+v", got)
	}
	for operation, want := range operations {
		if got := ask(t, handler, "validate", "Strict", operation); got == nil || got.Allowed || !strings.HasPrefix(got.Result.Message, want) {
			t.Errorf("%s: %+v", operation, got)
		}
	}

	handler, err = built(t, schemeOf("Chatty", &Chatty{}), func(mgr ctrl.Manager) error { return ctrl.NewWebhookManagedBy(mgr).For(&Chatty{}).Complete() })
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, handler, "mutate", "Chatty", admissionv1.Create); got != nil {
		t.Errorf("a type without defaults has a webhook for them: %+v", got)
	}
	for operation, want := range operations {
		if got := ask(t, handler, "validate", "Chatty", operation); got == nil || !got.Allowed || len(got.Warnings) != 1 || got.Warnings[0] != want {
			t.Errorf("%s: %+v", operation, got)
		}
	}
}

func TestACustomDefaulterAndValidatorReplaceTheMethodsOfTheType(t *testing.T) {
	handler, err := built(t, schemeOf("Strict", &Strict{}), func(mgr ctrl.Manager) error {
		return ctrl.NewWebhookManagedBy(mgr).For(&Strict{}).WithDefaulter(anyObject{}).WithValidator(anyObject{}).Complete()
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, handler, "mutate", "Strict", admissionv1.Create); got == nil || !strings.Contains(string(got.Patch), "custom") {
		t.Errorf("default: %+v", got)
	}
	if got := ask(t, handler, "validate", "Strict", admissionv1.Create); got == nil || got.Allowed || got.Result.Message != "custom n" {
		t.Errorf("validate: %+v", got)
	}
}

func TestAHubGetsAConversionWebhook(t *testing.T) {
	scheme, _ := convertible(t)
	handler, err := built(t, scheme, func(mgr ctrl.Manager) error { return ctrl.NewWebhookManagedBy(mgr).For(&hub{}).Complete() })
	if err != nil {
		t.Fatal(err)
	}
	_, pattern := handler.(*http.ServeMux).Handler(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/convert", nil))
	if pattern != "/convert" {
		t.Error("nothing is served at /convert")
	}
}

func TestABuilderWithoutATypeIsAnError(t *testing.T) {
	_, err := built(t, runtime.NewScheme(), func(mgr ctrl.Manager) error { return ctrl.NewWebhookManagedBy(mgr).Complete() })
	if err == nil {
		t.Error("no error")
	}
}
