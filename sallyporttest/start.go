// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// startLimit is how long [Start] waits until the API server calls the webhooks.
const startLimit = 2 * time.Minute

// Cluster is an API server with a running application. Create it with [Start].
type Cluster struct {
	// Config has all permissions (group system:masters).
	Config *rest.Config
	// Client knows the types of the application's scheme, see [sallyport.App.Scheme]. It does
	// not cache.
	Client client.Client
}

// StartOption configures [Start].
type StartOption func(*starting)

type starting struct {
	apiServer []APIServerOption
	replicas  int
	settings  []func(*sallyport.Settings)
}

// WithAPIServer configures the API server.
func WithAPIServer(options ...APIServerOption) StartOption {
	return func(s *starting) { s.apiServer = append(s.apiServer, options...) }
}

// WithReplicas sets the number of replicas. They share a certificate authority, elect a leader,
// and share the load, like the pods of a Deployment. Default 1.
func WithReplicas(n int) StartOption { return func(s *starting) { s.replicas = n } }

// WithSettings changes the settings of each replica. It runs after Start has set the listen
// address, the endpoint for the API server, and the logger, which is the test's.
func WithSettings(change func(*sallyport.Settings)) StartOption {
	return func(s *starting) { s.settings = append(s.settings, change) }
}

// Start starts etcd and kube-apiserver like [StartAPIServer], installs the application's
// CustomResourceDefinitions and runs the application. It returns once the API server calls the
// application's webhooks and converters. When the test ends, Start stops the application, which
// must end without an error, and then the API server.
func Start(t testing.TB, app *sallyport.App, options ...StartOption) *Cluster {
	t.Helper()
	s := &starting{replicas: 1}
	for _, option := range options {
		option(s)
	}
	if s.replicas < 1 {
		t.Fatalf("sallyporttest.Start: %d replicas: there has to be one", s.replicas)
	}
	config := StartAPIServer(t, append([]APIServerOption{WithCRDs(app.CRDs()...)}, s.apiServer...)...)
	own, err := client.New(config, client.Options{Scheme: app.Scheme()})
	if err != nil {
		t.Fatalf("sallyporttest.Start: %v", err)
	}
	scheme := runtime.NewScheme() // for the client of this package
	utilruntime.Must(errors.Join(clientscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)))
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatalf("sallyporttest.Start: %v", err)
	}
	name, probes := s.run(t, app, config)
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	if err := called(ctx, admin, app, name, probes); err != nil {
		t.Fatalf("sallyporttest.Start: the webhooks are not called: %v", err)
	}
	return &Cluster{Config: config, Client: own}
}

// run runs the replicas until the test ends. It returns the name of their configurations and
// the URLs of their probes.
func (s *starting) run(t testing.TB, app *sallyport.App, config *rest.Config) (name string, probes []string) {
	t.Helper()
	var ports []int
	var addresses []string
	for range s.replicas {
		port := freeport.For(t)
		ports, addresses = append(ports, port), append(addresses, onLoopback(port))
	}
	front := addresses[0]
	if s.replicas > 1 {
		front = balance(t, addresses)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, s.replicas)
	for i, port := range ports {
		settings := app.DefaultSettings()
		settings.Client = rest.CopyConfig(config)
		settings.Logger = slog.New(slog.NewTextHandler(t.Output(), nil)).With("replica", i+1)
		settings.Serving.BindAddress, settings.Serving.SecurePort = "127.0.0.1", int32(port)
		settings.Serving.MetricsBindAddress = onLoopback(freeport.For(t))
		settings.Serving.DrainMin, settings.Serving.DrainTimeout = 0, 0
		settings.Registration.URL = "https://" + front
		settings.Certificate.AuthoritySecret = "default/" + settings.Registration.Name + "-authority"
		settings.LeaderElection.Namespace = "default"
		for _, change := range s.settings {
			change(&settings)
		}
		name = settings.Registration.Name
		if settings.Serving.MetricsBindAddress != "" && settings.Serving.MetricsBindAddress != "0" {
			probes = append(probes, "http://"+settings.Serving.MetricsBindAddress+"/readyz")
		}
		go func() { ended <- app.Run(ctx, settings) }()
	}
	t.Cleanup(func() {
		cancel()
		for range s.replicas {
			if err := <-ended; err != nil {
				t.Errorf("sallyporttest.Start: a replica ended with: %v", err)
			}
		}
	})
	return name, probes
}

// called waits until every replica is ready, the configurations and conversions are registered,
// and the API server has observed them. The API server observes configurations in order. So
// called registers one more webhook, which denies a probe object, and waits for a denial.
func called(ctx context.Context, c client.Client, app *sallyport.App, name string, probes []string) error {
	poll := func(what string, done func(context.Context) error) error {
		var last error
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			err := done(ctx)
			if ctx.Err() == nil {
				last = err
			}
			return err == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", what, errors.Join(err, last))
		}
		return nil
	}
	for _, probe := range probes {
		if err := poll(probe, func(ctx context.Context) error { return ready(ctx, probe) }); err != nil {
			return err
		}
	}
	types := map[admission.Type]bool{}
	for _, webhook := range app.Webhooks() {
		types[webhook.Type] = true
	}
	for of := range types {
		if err := poll(string(of)+" webhooks", func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Name: name}, configuration(of, name, nil))
		}); err != nil {
			return err
		}
	}
	for _, converter := range app.Converters() {
		if err := poll("conversion of "+converter.CRD(), func(ctx context.Context) error { return converts(ctx, c, converter.CRD()) }); err != nil {
			return err
		}
	}
	for of := range types {
		if err := poll(string(of)+" webhooks are known to the API server", awaitCalls(ctx, c, app, of)); err != nil {
			return err
		}
	}
	return nil
}

func ready(ctx context.Context, probe string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, probe, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s, %w", response.Status, strings.TrimSpace(string(text)), err)
	}
	return nil
}

func converts(ctx context.Context, c client.Client, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return err
	}
	if by := crd.Spec.Conversion; by == nil || by.Webhook == nil || by.Webhook.ClientConfig == nil || len(by.Webhook.ClientConfig.CABundle) == 0 {
		return errors.New("the definition names no webhook yet")
	}
	return nil
}

// awaitCalls registers a webhook that denies ConfigMaps with one label. It returns a check that
// the API server calls it, or calls a webhook of the application that denies them too.
func awaitCalls(ctx context.Context, c client.Client, app *sallyport.App, of admission.Type) func(context.Context) error {
	const label, refused = "sallyporttest.sallyport.io/probe", "sallyporttest: the probe is called"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if json.NewDecoder(r.Body).Decode(review) != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: refused}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	none := admissionregistrationv1.SideEffectClassNone
	name := "sallyporttest-" + strings.ToLower(string(of))
	registered := configuration(of, name, &admissionregistrationv1.MutatingWebhook{
		Name: "probe.sallyporttest.sallyport.io", SideEffects: &none, AdmissionReviewVersions: []string{reviewversion.V1},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: name}},
		Rules:          admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"), admissionregistrationv1.Create),
	})
	created := c.Create(ctx, registered)
	return func(ctx context.Context) error {
		if created != nil {
			return created
		}
		err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{label: name}}}, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), refused) && !deniedBy(app, of, err) {
			return fmt.Errorf("the answer to a probe is %w", err)
		}
		server.Close()
		if err := c.Delete(ctx, registered); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
}

// deniedBy reports whether an error is a denial by a webhook of the application.
func deniedBy(app *sallyport.App, of admission.Type, err error) bool {
	return slices.ContainsFunc(app.Webhooks(), func(w admission.Webhook) bool {
		return w.Type == of && strings.Contains(err.Error(), fmt.Sprintf("admission webhook %q denied the request", w.Name))
	})
}

// configuration returns a configuration of a type, with the webhook unless it is nil.
func configuration(of admission.Type, name string, webhook *admissionregistrationv1.MutatingWebhook) client.Object {
	meta := metav1.ObjectMeta{Name: name}
	if of == admission.TypeMutating {
		made := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}
		if webhook != nil {
			made.Webhooks = append(made.Webhooks, *webhook)
		}
		return made
	}
	made := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	if webhook != nil {
		made.Webhooks = append(made.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: webhook.Name, SideEffects: webhook.SideEffects, AdmissionReviewVersions: webhook.AdmissionReviewVersions,
			ClientConfig: webhook.ClientConfig, ObjectSelector: webhook.ObjectSelector, Rules: webhook.Rules,
		})
	}
	return made
}

// balance listens until the test ends and distributes connections over the addresses
// round-robin, like a Service. It skips addresses that do not answer.
func balance(t testing.TB, addresses []string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("sallyporttest.Start: %v", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var next atomic.Uint32
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = from.Close() }()
				for range addresses {
					to, err := net.Dial("tcp", addresses[int(next.Add(1))%len(addresses)])
					if err != nil {
						continue
					}
					go func() {
						_, _ = io.Copy(to, from)
						_ = to.Close()
					}()
					_, _ = io.Copy(from, to)
					return
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func onLoopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
