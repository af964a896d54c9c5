// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sallyport-io/sallyport/admission"
)

// Whichever way a handler asks for a logger, it knows the request.
func TestLoggersKnowTheRequest(t *testing.T) {
	request := &admissionv1.AdmissionRequest{
		UID: "1234", Operation: admissionv1.Create, Namespace: "team-a", Name: "web",
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, SubResource: "status",
		UserInfo: authenticationv1.UserInfo{Username: "jane"},
		Object:   runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`)},
	}
	const known = `msg=hello webhook=a.example.com requestID=1234 operation=CREATE resource=pods/status object=team-a/web user=jane`
	for name, log := range map[string]func(context.Context){
		"slog":               func(ctx context.Context) { admission.Logger(ctx).Info("hello") },
		"logr":               func(ctx context.Context) { logr.FromContextOrDiscard(ctx).Info("hello") },
		"controller-runtime": func(ctx context.Context) { controllerlog.FromContext(ctx).Info("hello") },
		"a derived context": func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			admission.Logger(ctx).Info("hello")
		},
	} {
		t.Run(name, func(t *testing.T) {
			handlers := map[string]admission.Handler{
				"mutator":   admission.Mutate(func(ctx context.Context, _ *corev1.Pod) error { log(ctx); return nil }),
				"validator": admission.Validate(func(ctx context.Context, _ *corev1.Pod) error { log(ctx); return nil }),
			}
			for kind, handler := range handlers {
				var out bytes.Buffer
				server := slog.New(slog.NewTextHandler(&out, nil)).With("webhook", "a.example.com")
				for base, ctx := range map[string]context.Context{
					"slog": admission.WithLogger(t.Context(), server), "logr": logr.NewContext(t.Context(), logr.FromSlogHandler(server.Handler())),
				} {
					out.Reset()
					if _, err := handler.Handle(ctx, request); err != nil {
						t.Fatal(err)
					}
					if !strings.Contains(out.String(), known) {
						t.Errorf("%s, %s in the context: %q", kind, base, out.String())
					}
				}
			}
		})
	}
	if admission.Logger(t.Context()) != slog.Default() {
		t.Error("outside of a call it is another one than the default")
	}
}
