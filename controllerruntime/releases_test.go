// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	ctrlconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/controllerruntime"
	"github.com/sallyport-io/sallyport/conversion"
)

// Until014 is an API type as in releases up to controller-runtime v0.14.
type Until014 struct{ corev1.ConfigMap }

func (o *Until014) DeepCopyObject() runtime.Object        { return &Until014{*o.DeepCopy()} }
func (o *Until014) Default()                              { o.Data = map[string]string{"defaulted": ""} }
func (o *Until014) ValidateCreate() error                 { return errors.New("asked") }
func (o *Until014) ValidateUpdate(_ runtime.Object) error { return nil }
func (o *Until014) ValidateDelete() error                 { return nil }

// Until019 is an API type as in releases v0.15 to v0.19.
type Until019 struct{ corev1.ConfigMap }

func (o *Until019) DeepCopyObject() runtime.Object { return &Until019{*o.DeepCopy()} }
func (o *Until019) Default()                       { o.Data = map[string]string{"defaulted": ""} }
func (o *Until019) ValidateCreate() (ctrladmission.Warnings, error) {
	return nil, errors.New("asked")
}
func (o *Until019) ValidateUpdate(_ runtime.Object) (ctrladmission.Warnings, error) { return nil, nil }
func (o *Until019) ValidateDelete() (ctrladmission.Warnings, error)                 { return nil, nil }

// of defaults and validates objects of type T; runtime.Object stands for any type.
type of[T runtime.Object] struct{}

func (of[T]) Default(_ context.Context, object T) error {
	any(object).(metav1.Object).SetLabels(map[string]string{"defaulted": ""})
	return nil
}
func (of[T]) ValidateCreate(context.Context, T) (ctrladmission.Warnings, error) {
	return nil, errors.New("asked")
}
func (of[T]) ValidateUpdate(context.Context, T, T) (ctrladmission.Warnings, error) { return nil, nil }
func (of[T]) ValidateDelete(context.Context, T) (ctrladmission.Warnings, error)    { return nil, nil }

// asks sends a CREATE to a handler. A mutating handler must set the default, a validating one
// must deny.
func asks(t *testing.T, mutates bool, handler admission.Handler, kind string) {
	t.Helper()
	got, err := handler.Handle(t.Context(), &admissionv1.AdmissionRequest{
		UID: "u", Operation: admissionv1.Create, Name: "n", Kind: metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind},
		Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.com/v1","kind":"` + kind + `","metadata":{"name":"n"}}`)},
	})
	switch {
	case err != nil:
		t.Error(err)
	case mutates && (!got.Allowed || !strings.Contains(string(got.Patch.AppendJSON(nil)), "defaulted")):
		t.Errorf("no default is set: %+v", got)
	case !mutates && (got.Allowed || !strings.Contains(got.Status.Message, "asked")):
		t.Errorf("it is not validated: %+v", got)
	}
}

// webhooksOf returns an application's mutating and validating webhook.
func webhooksOf(t *testing.T, option sallyport.Option) []admission.Webhook {
	t.Helper()
	app, err := sallyport.New("releases", option)
	if err != nil {
		t.Fatal(err)
	}
	if len(app.Webhooks()) != 2 {
		t.Fatalf("webhooks: %v", app.Webhooks())
	}
	return app.Webhooks()
}

func TestEachReleaseOfControllerRuntimeFits(t *testing.T) {
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(version, &Until014{}, &Until019{})
	scheme.AddKnownTypeWithName(version.WithKind("ConfigMap"), &corev1.ConfigMap{})
	// The manager is never started.
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: controllerruntime.NewServer(webhook.Options{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("up to v0.14", func(t *testing.T) {
		type T = Until014
		webhooks := webhooksOf(t, sallyport.WithTypes(scheme, &T{}))
		asks(t, true, webhooks[0].Handler, "Until014")
		asks(t, false, webhooks[1].Handler, "Until014")
		if err := controllerruntime.NewWebhookManagedBy(mgr).For(&T{}).Complete(); err != nil {
			t.Error(err)
		}
	})
	t.Run("v0.15 to v0.19", func(t *testing.T) {
		type T = Until019
		webhooks := webhooksOf(t, sallyport.WithTypes(scheme, &T{}))
		asks(t, true, webhooks[0].Handler, "Until019")
		asks(t, false, webhooks[1].Handler, "Until019")
		if err := controllerruntime.NewWebhookManagedBy(mgr).For(&T{}).Complete(); err != nil {
			t.Error(err)
		}
	})
	t.Run("objects of any type", func(t *testing.T) {
		type T = corev1.ConfigMap
		kind := admission.ForKind(version.WithKind("ConfigMap"))
		var d ctrladmission.CustomDefaulter = of[runtime.Object]{} //nolint:staticcheck // it is deprecated, and what this is about
		var v ctrladmission.CustomValidator = of[runtime.Object]{} //nolint:staticcheck // likewise
		_, _ = controllerruntime.Defaulter(d, admission.As(&T{})), controllerruntime.Validator(v, admission.As(&T{}))
		asks(t, true, controllerruntime.Defaulter(d, admission.As(&T{}), kind), "ConfigMap")
		asks(t, false, controllerruntime.Validator(v, admission.As(&T{}), kind), "ConfigMap")
		if err := controllerruntime.NewWebhookManagedBy(mgr).For(&T{}).WithDefaulter(d).WithValidator(v).Complete(); err != nil {
			t.Error(err)
		}
	})
	t.Run("objects of one type", func(t *testing.T) {
		kind := admission.ForKind(version.WithKind("ConfigMap"))
		d, v := of[*corev1.ConfigMap]{}, of[*corev1.ConfigMap]{}
		_, _ = controllerruntime.Defaulter(d), controllerruntime.Validator(v)
		asks(t, true, controllerruntime.Defaulter(d, kind), "ConfigMap")
		asks(t, false, controllerruntime.Validator(v, kind), "ConfigMap")
	})
	t.Run("handlers", func(t *testing.T) {
		h := ctrladmission.HandlerFunc(func(context.Context, ctrladmission.Request) ctrladmission.Response {
			return ctrladmission.Denied("asked")
		})
		asks(t, false, controllerruntime.Handler(h), "ConfigMap")
	})
	t.Run("conversion", func(t *testing.T) {
		type T = hub
		scheme, kind := convertible(t)
		construct := ctrlconversion.NewHubSpokeConverter(&hub{}, ctrlconversion.NewSpokeConverter(&spoke{},
			func(_ context.Context, from *hub, to *spoke) error { return to.ConvertFrom(from) },
			func(_ context.Context, from *spoke, to *hub) error { return from.ConvertTo(to) }))
		for _, converter := range []conversion.Converter{
			conversion.HubAndSpokes[*T](scheme),
			controllerruntime.Converter(scheme, kind, construct),
		} {
			got, err := converter.Convert(t.Context(), []byte(`{"apiVersion":"example.com/v1","kind":"Settings","metadata":{"name":"s"},"text":"a"}`), "v2")
			if err != nil || !strings.Contains(string(got), `"example.com/v2"`) || !strings.Contains(string(got), `"lines":["a"]`) {
				t.Errorf("got %s, %v", got, err)
			}
		}
	})
}

// The code in the table of releases compiles.
func TestTheTableOfReleasesShowsCodeThatIsCompiled(t *testing.T) {
	guide, err := os.ReadFile("../docs/controller-runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("releases_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "## Which release fits what")
	section, _, _ = strings.Cut(section, "\n## ")
	lines := 0
	for _, line := range regexp.MustCompile("`[^`]+`").FindAllString(section, -1) {
		line = strings.Trim(line, "`")
		if !strings.HasSuffix(line, ")") || !strings.HasPrefix(line, "controllerruntime.") && !strings.HasPrefix(line, "sallyport.") && !strings.HasPrefix(line, "conversion.") && !strings.HasPrefix(line, "ctrl.") {
			continue
		}
		lines++
		if !strings.Contains(string(code), line) {
			t.Errorf("releases_test.go does not compile %s", line)
		}
	}
	if lines < 10 {
		t.Errorf("only %d lines of code", lines)
	}
}
