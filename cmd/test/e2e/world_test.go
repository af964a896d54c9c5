// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/serving"
)

// world is an API server that serves all it can, for what is asked of webhooks.
type world struct {
	config  *rest.Config
	clients kubernetes.Interface
	objects dynamic.Interface
	folder  string // of the files with which the API server shows who it is

	byToken, byCertificate net.Listener // for servers to which it shows that
}

// TestWhatIsAskedOfWebhooks goes through what the API server asks of webhooks in which
// way, and what it makes of the answers. The webhooks are the library's, served in this
// process.
func TestWhatIsAskedOfWebhooks(t *testing.T) {
	t.Parallel()
	w := &world{folder: t.TempDir()}
	w.configureCallers(t)
	w.config = sallyporttest.StartAPIServer(t,
		sallyporttest.WithAPIServerFlag("runtime-config", "api/all=true"),
		// These give finalizers to objects, and somebody would have to take them away.
		sallyporttest.WithAPIServerFlag("disable-admission-plugins", "ServiceAccount", "StorageObjectInUseProtection"),
		sallyporttest.WithAPIServerFlag("admission-control-config-file", filepath.Join(w.folder, "admission.yaml")),
	)
	var err error
	if w.clients, err = kubernetes.NewForConfig(w.config); err != nil {
		t.Fatal(err)
	}
	if w.objects, err = dynamic.NewForConfig(w.config); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"requests of every resource, verb and version have the shape that they should", testRequestShapes},
		{"a handler has the time of the request or of the webhook, whichever ends first", testTimeouts},
		{"mutating webhooks are called again when somebody else has changed the object", testReinvocation},
		{"what came with a request is in managedFields, and what webhooks add is not", testManagedFields},
		{"the API server shows who it is to admission webhooks", testCallers},
		{"objects are sent in the version of the rules, and changes come back in that of the request", testEquivalentVersions},
		{"match conditions decide who is called", testMatchConditions},
		{"objects are converted with every kind of converter, in both versions of reviews", testConversions},
		{"converters that fail or change what they must not are refused", testBadConversions},
		{"a kind that nobody converts is named to who asks for it", testUnknownKind},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, w) })
	}
}

// namespace makes a namespace. It stays: nobody is there to delete what is in it.
func (w *world) namespace(t *testing.T, name string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.clients.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// within selects a namespace by its name.
func within(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
}

// A webhookServer serves an application's handler on loopback.
type webhookServer struct {
	url      string
	caBundle []byte
}

// start serves an application until the test ends, on a port of its own if the listener is
// nil. Wrap may be nil.
func (w *world) start(t *testing.T, listener net.Listener, app *sallyport.App, options serving.Options, wrap func(http.Handler) http.Handler) *webhookServer {
	t.Helper()
	handler, err := app.Handler(options)
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewUnstartedServer(handler)
	if listener != nil {
		_ = server.Listener.Close()
		server.Listener = listener
	}
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return &webhookServer{
		url:      server.URL,
		caBundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

// serve serves webhooks, registers them in configurations of that name, and returns when
// the API server calls them. When the test ends, they go before their server does.
func (w *world) serve(t *testing.T, name string, webhooks []admission.Webhook, wrap func(http.Handler) http.Handler) {
	t.Helper()
	w.serveAt(t, nil, name, webhooks, serving.DefaultOptions(), wrap)
}

func (w *world) serveAt(t *testing.T, listener net.Listener, name string, webhooks []admission.Webhook, options serving.Options, wrap func(http.Handler) http.Handler) {
	t.Helper()
	webhooks = append(webhooks, probes(name)...)
	app, err := sallyport.New(name, sallyport.WithWebhooks(webhooks...))
	if err != nil {
		t.Fatal(err)
	}
	server := w.start(t, listener, app, options, wrap)
	w.register(t, name, server, webhooks)
}

// register writes the configurations and waits for the probes, which are the last in each.
func (w *world) register(t *testing.T, name string, server *webhookServer, webhooks []admission.Webhook) {
	t.Helper()
	built, err := registration.Build(registration.Config{Name: name, Endpoint: registration.Endpoint{URL: server.url}}, webhooks, server.caBundle)
	if err != nil {
		t.Fatal(err)
	}
	apply := metav1.ApplyOptions{FieldManager: "e2e", Force: true}
	if _, err := w.clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Apply(t.Context(), built.Mutating, apply); err != nil {
		t.Fatal(err)
	}
	if _, err := w.clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Apply(t.Context(), built.Validating, apply); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		mutating := w.clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, name, metav1.DeleteOptions{})
		validating := w.clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, name, metav1.DeleteOptions{})
		for _, err := range []error{mutating, validating} {
			if err != nil {
				t.Error(err)
			}
		}
		w.probe(t, name, false)
	})
	w.probe(t, name, true)
}

// probeLabel is on the objects that the probes deny, and says whose they are.
const probeLabel = "e2e.sallyport.io/probe"

// probes deny objects that are made for nothing else. They stand at the end of a
// configuration: when they are called, the others are.
func probes(name string) []admission.Webhook {
	deny := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.DeniedResponse("the probe has arrived"), nil
	})
	var probes []admission.Webhook
	for _, kind := range []admission.Type{admission.TypeMutating, admission.TypeValidating} {
		suffix := strings.ToLower(string(kind))
		probes = append(probes, admission.Webhook{
			Name: "probe." + suffix + ".sallyport.io", Path: "/probe/" + suffix, Type: kind, Handler: deny,
			Rules:          admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"), admissionregistrationv1.Create),
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{probeLabel: name + "." + suffix}},
			TimeoutSeconds: 30, FailurePolicy: admissionregistrationv1.Fail, AllowWedge: "it is for probes only",
		})
	}
	return probes
}

// probe waits until the webhooks are called, or until they are not any more.
func (w *world) probe(t *testing.T, name string, called bool) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also while the test is cleaned up
	for _, kind := range []string{"mutating", "validating"} {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Labels: map[string]string{probeLabel: name + "." + kind}}}
		eventuallyIn(ctx, t, "the "+kind+" webhooks of "+name, func(ctx context.Context) (bool, error) {
			_, err := w.clients.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && (!apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "the probe has arrived")) {
				return false, err
			}
			return (err != nil) == called, nil
		})
	}
}

// A journal keeps what handlers note, by the name of who does.
type journal[T any] struct {
	mu      sync.Mutex
	entries map[string][]T
}

func (j *journal[T]) note(name string, entry T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.entries == nil {
		j.entries = map[string][]T{}
	}
	j.entries[name] = append(j.entries[name], entry)
}

// take returns what there is and begins anew.
func (j *journal[T]) take() map[string][]T {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := j.entries
	j.entries = nil
	return entries
}

// peek counts the entries under a name.
func (j *journal[T]) peek(name string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.entries[name])
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
