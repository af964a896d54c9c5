// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
	"github.com/sallyport-io/sallyport/test/lab"
)

// ConfigMap has the name of the kind, but not its fields.
type ConfigMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Data              map[string]int `json:"data,omitempty"`
}

func (c *ConfigMap) DeepCopyObject() runtime.Object { d := *c; return &d }

func change(mutate func(c *corev1.ConfigMap)) admission.Handler {
	return admission.Mutate(func(_ context.Context, c *corev1.ConfigMap) error { mutate(c); return nil })
}

func refuse(err error) admission.Handler {
	return admission.Mutate(func(context.Context, *corev1.ConfigMap) error { return err })
}

// behaviours are possible results of handlers, and their effect in the API server: a
// fault is up to the failure policy, a decision is final.
var behaviours = []struct {
	name    string
	handler admission.Handler
	// code of the refusal, in spite of Ignore; 0 means a fault.
	code      int32
	message   string
	operation admissionregistrationv1.OperationType
}{
	{"panics", refusePanic(), 0, "", "CREATE"},
	{"says-nothing", admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) { return nil, nil }), 0, "", "CREATE"},
	{"blocks", admission.Mutate(func(ctx context.Context, _ *corev1.ConfigMap) error { <-ctx.Done(); return ctx.Err() }), 0, "", "CREATE"},
	{"blocks-for-longer", admission.Mutate(func(context.Context, *corev1.ConfigMap) error { time.Sleep(1500 * time.Millisecond); return nil }), 0, "", "CREATE"},
	{"is-at-fault", admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return nil, errors.New("a bug")
	}), 0, "a bug", "CREATE"},
	{"says-that-it-is-at-fault", refuse(admission.Fault(errors.New("a bug"))), 0, "a bug", "CREATE"},
	{"returns-an-error", refuse(errors.New("a lookup failed")), 0, "a lookup failed", "CREATE"},
	{"returns-what-a-client-got", refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no right"))), 0, "no right", "CREATE"},
	{"denies", refuse(admission.Denyf("say why")), 403, "say why", "CREATE"},
	{"returns-field-errors", refuse(field.ErrorList{field.Required(field.NewPath("data", "a"), "say what")}.ToAggregate()), 422, "data.a: Required value: say what", "CREATE"},
	{"returns-invalid", refuse(apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{field.Required(field.NewPath("data", "a"), "say what")})), 422, "data.a: Required value: say what", "CREATE"},
	{"returns-invalid-of-a-client", refuse(apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", field.ErrorList{field.Required(field.NewPath("spec"), "")})), 0, "spec: Required", "CREATE"},
	{"returns-an-internal-error", refuse(field.ErrorList{field.Required(field.NewPath("data", "a"), ""), field.InternalError(field.NewPath("data", "b"), errors.New("no answer"))}.ToAggregate()), 0, "no answer", "CREATE"},
	{"patches-a-deletion", admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Patched(jsonpatch.Patch{{Op: jsonpatch.Add, Path: "/data", Value: []byte(`{}`)}}), nil
	}), 0, "", "DELETE"},
	{"changes-the-name", change(func(c *corev1.ConfigMap) { c.Name = "another" }), 0, "metadata.name", "CREATE"},
	{"changes-the-namespace", change(func(c *corev1.ConfigMap) { c.Namespace = "another" }), 0, "metadata.namespace", "CREATE"},
	{"forgets-the-kind", change(func(c *corev1.ConfigMap) { *c = corev1.ConfigMap{ObjectMeta: c.ObjectMeta, Data: c.Data} }), 200, "", "CREATE"},
	{"reads-another-kind", admission.Mutate(func(context.Context, *corev1.Secret) error { return nil }), 400, "v1 ConfigMap", "CREATE"},
	{"reads-other-fields", admission.Mutate(func(context.Context, *ConfigMap) error { return nil }), 400, "/data/key", "CREATE"},
	{"has-no-function", admission.ValidateEach(admission.Checks[*corev1.ConfigMap]{Update: func(context.Context, *corev1.ConfigMap, *corev1.ConfigMap) error { return nil }}), 0, "no function for CREATE", "CREATE"},
}

func refusePanic() admission.Handler {
	return admission.Mutate(func(context.Context, *corev1.ConfigMap) error { panic("hunter2") })
}

func TestWhatHandlersDoOnARealAPIServer(t *testing.T) {
	client := lab.APIServer(t)
	rules := admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"), "CREATE")

	var options []sallyport.Option
	for _, b := range behaviours {
		for _, policy := range []admissionregistrationv1.FailurePolicyType{"Fail", "Ignore"} {
			name := b.name + "-" + strings.ToLower(string(policy))
			// A handler that does not answer the operation cannot be registered for it.
			// Hiding that stands for rules that another client wrote.
			hidden := admission.HandlerFunc(b.handler.Handle)
			options = append(options, sallyport.WithWebhooks(admission.Mutating(name+".sallyport.example.com",
				admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"), b.operation), hidden,
				admission.WithFailurePolicy(policy), admission.WithTimeout(1),
				admission.WithObjectSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"case": name}}))))
		}
	}
	options = append(options, sallyport.WithWebhooks(admission.Mutating("marker.sallyport.example.com", rules, refuse(admission.Denyf("I am here")),
		admission.WithObjectSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"case": "marker"}}))))
	var controllerRuns, componentRuns atomic.Bool
	options = append(options,
		sallyport.WithController("flag", func(m manager.Manager) error {
			return m.Add(manager.RunnableFunc(func(ctx context.Context) error { controllerRuns.Store(true); <-ctx.Done(); return nil }))
		}),
		sallyport.WithComponent(func(sallyport.Environment) (sallyport.Component, error) {
			return sallyport.Component{
				Name: "component",
				Ready: func() error {
					if !componentRuns.Load() {
						return errors.New("not yet")
					}
					return nil
				},
				Run:    func(ctx context.Context) error { componentRuns.Store(true); <-ctx.Done(); return nil },
				Status: func() slog.Attr { return slog.Bool("component", componentRuns.Load()) },
			}, nil
		}))
	app, err := sallyport.New("behaviours", options...)
	if err != nil {
		t.Fatal(err)
	}
	settings, _ := settingsOn(t, app, client, io.Discard)
	configMaps := kubernetes.NewForConfigOrDie(client).CoreV1().ConfigMaps(settings.LeaderElection.Namespace)
	settings.LeaderElection.LeaderElect = false
	settings.Serving.MetricsBindAddress = "0"
	run(t, app, settings)

	object := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"case": name}},
			Data:       map[string]string{"key": "hunter2"},
		}
	}
	for {
		_, err := configMaps.Create(t.Context(), object("marker"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "I am here") {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the webhooks are not called: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if !controllerRuns.Load() {
		t.Error("the controller does not run")
	}

	for _, b := range behaviours {
		for _, policy := range []string{"fail", "ignore"} {
			name := b.name + "-" + policy
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				_, err := configMaps.Create(t.Context(), object(name), metav1.CreateOptions{})
				if b.operation == admissionregistrationv1.Delete {
					if err != nil {
						t.Fatal(err)
					}
					err = configMaps.Delete(t.Context(), name, metav1.DeleteOptions{})
				}
				code := int32(200)
				var status apierrors.APIStatus
				if errors.As(err, &status) {
					code = status.Status().Code
				} else if err != nil {
					t.Fatal(err)
				}
				want := b.code
				if want == 0 {
					want = 200
					if policy == "fail" {
						want = 500
					}
				}
				if code != want {
					t.Errorf("the API server answers %d, want %d: %v", code, want, err)
				}
				if err != nil && !strings.Contains(err.Error(), b.message) {
					t.Errorf("nothing of %q in %v", b.message, err)
				}
				if err != nil && strings.Contains(err.Error(), "hunter2") {
					t.Errorf("content in %v", err)
				}
				if err == nil && b.operation == admissionregistrationv1.Create {
					if got, err := configMaps.Get(t.Context(), name, metav1.GetOptions{}); err != nil || got.Data["key"] != "hunter2" {
						t.Errorf("what was admitted is %+v, %v", got, err)
					}
				}
			})
		}
	}
}

// run runs the application until the test and its subtests end, and checks that it then
// ends.
func run(t *testing.T, app *sallyport.App, settings sallyport.Settings) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx, settings) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the application ended with %v", err)
		}
		goleak.VerifyNone(t, ignore,
			goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
			goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*http2ClientConn).readLoop"))
	})
}

func TestControllersWithoutTheWebhooksOnARealAPIServer(t *testing.T) {
	client := lab.APIServer(t)
	started := make(chan struct{})
	app, err := sallyport.New("alone",
		sallyport.WithWebhooks(mutating("a.pods.example.com")),
		sallyport.WithController("flag", func(m manager.Manager) error {
			return m.Add(manager.RunnableFunc(func(ctx context.Context) error { close(started); <-ctx.Done(); return nil }))
		}),
		sallyport.WithController("left-out", func(manager.Manager) error { return errors.New("it is not selected") }))
	if err != nil {
		t.Fatal(err)
	}
	settings, address := settingsOn(t, app, client, io.Discard)
	settings.Webhooks, settings.Controllers = nil, []string{"*", "-left-out"}
	run(t, app, settings)
	<-started

	leases := kubernetes.NewForConfigOrDie(client).CoordinationV1().Leases(settings.LeaderElection.Namespace)
	if lease, err := leases.Get(t.Context(), "alone", metav1.GetOptions{}); err != nil || lease.Spec.HolderIdentity == nil {
		t.Errorf("the lease is %+v, %v", lease, err)
	}
	for path, want := range map[string]string{"/readyz": "ok", "/livez": "ok", "/metrics": "leader_election_master_status"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d, %v, %.200s", path, resp.StatusCode, err, body)
		}
	}
	configurations := kubernetes.NewForConfigOrDie(client).AdmissionregistrationV1().MutatingWebhookConfigurations()
	if _, err := configurations.Get(t.Context(), "alone", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("webhooks are registered: %v", err)
	}
}

// A configuration that the API server refuses from the start makes the server not
// ready, although it answers reviews. Once accepted, the server is ready.
func TestARefusedConfigurationIsNotReadyOnARealAPIServer(t *testing.T) {
	client := lab.APIServer(t)
	good := mutating("a.pods.example.com")
	bad := good
	bad.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "typo", Expression: "object.metadata.nmae == 'a' &&"}}
	var corrected atomic.Bool
	changed := make(chan func(), 1)
	app, err := sallyport.New("refused", sallyport.WithComponent(func(env sallyport.Environment) (sallyport.Component, error) {
		changed <- env.Changed
		return sallyport.Component{
			Name: "definitions", Webhooks: []admission.Webhook{good},
			Registered: func() []admission.Webhook {
				if corrected.Load() {
					return []admission.Webhook{good}
				}
				return []admission.Webhook{bad}
			},
		}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	settings, address := settingsOn(t, app, client, io.Discard)
	settings.LeaderElection.LeaderElect = false
	run(t, app, settings)

	awaitProbe(t, "http://"+address+"/readyz", http.StatusServiceUnavailable, "the API server refuses the webhook configurations")
	corrected.Store(true)
	(<-changed)()
	awaitProbe(t, "http://"+address+"/readyz", http.StatusOK, "ok")
}
