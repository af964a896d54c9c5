// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/internal/registration/rbac"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// patience limits how long a test waits for an event. The test continues as soon as it happens.
const patience = 30 * time.Second

// TestRegistrationOnARealAPIServer runs all tests against one real API server. Each test has its own
// objects. No other package shares the API server: the webhooks cover pods in all namespaces
// and do not answer.
func TestRegistrationOnARealAPIServer(t *testing.T) {
	config := sallyporttest.StartAPIServer(t)
	t.Run("what was registered is uninstalled", func(t *testing.T) { testUninstall(t, config) })
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"creates configurations with a URL and with a service":              testCreates,
		"leaves what others add, and writes nothing while nothing changes":  testForeignFields,
		"reports what others add":                                           testReportsForeignTerms,
		"removes what others add if that is refused":                        testRefusesForeignTerms,
		"lets the backstop follow terms for namespaces, and no others":      testBackstopFollowsNamespaces,
		"puts right what others change and what they delete":                testDrift,
		"restores the order of webhooks":                                    testOrder,
		"follows definitions, and deletes a configuration without webhooks": testDefinitions,
		"removes what an earlier run left behind":                           testLeftOvers,
		"deletes nothing that holds something of others":                    testKeepsOthers,
		"follows the CA bundle":                                             testBundle,
		"recovers from definitions that the API server refuses":             testRefused,
		"writes the conversion stanza of definitions that exist":            testConversion,
		"registers conversions before webhooks":                             testConversionBeforeWebhooks,
		"adopts the terms that others add to selectors":                     testAdoption,
		"backs off from those who change again and again what is ours":      testFight,
		"writes nothing while it does not lead":                             testFollower,
		"needs no more rights than PolicyRules":                             testRights,
		"says that it may not write, or may not read":                       testForbidden,
	} {
		t.Run(name, func(t *testing.T) { test(t, config) })
	}
}

func testCreates(t *testing.T, config *rest.Config) {
	both := []admission.Webhook{webhook(admission.TypeMutating, "a.creates.example.com"), webhook(admission.TypeValidating, "b.creates.example.com")}
	both[0].MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "not-mirror", Expression: "!('x' in object.metadata)"}}

	k := newController(t, config, "creates-url", both)
	k.start()
	k.registered()
	mutating, validating := k.mutating(), k.validating()
	if url := mutating.Webhooks[0].ClientConfig.URL; url == nil || *url != "https://127.0.0.1:9443/a.creates.example.com" {
		t.Errorf("mutating URL %v", url)
	}
	if url := validating.Webhooks[0].ClientConfig.URL; url == nil || *url != "https://127.0.0.1:9443/b.creates.example.com" {
		t.Errorf("validating URL %v", url)
	}
	if !bytes.Equal(mutating.Webhooks[0].ClientConfig.CABundle, k.bundle()) {
		t.Error("another CA bundle")
	}
	if value := mutating.Labels[registration.ManagedByLabel]; value != registration.ManagedByValue {
		t.Errorf("managed by %q", value)
	}
	for _, entry := range mutating.ManagedFields {
		if entry.Manager != "sallyport" || entry.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("fields owned by %s with %s", entry.Manager, entry.Operation)
		}
	}

	k = newController(t, config, "creates-service", both)
	k.options.Config.Endpoint = registration.Endpoint{Service: &registration.Service{Namespace: "system", Name: "webhooks", Port: 8443}}
	k.start()
	k.registered()
	want := &admissionregistrationv1.ServiceReference{
		Namespace: "system", Name: "webhooks", Port: new(int32(8443)), Path: new("/a.creates.example.com"),
	}
	if diff := cmp.Diff(want, k.mutating().Webhooks[0].ClientConfig.Service); diff != "" {
		t.Errorf("service (-want +got):\n%s", diff)
	}

	// Replace the URL by a service.
	k.stop()
	k.options.Config.Endpoint = registration.Endpoint{URL: "https://127.0.0.1:9443"}
	k.start()
	k.registered()
	if client := k.mutating().Webhooks[0].ClientConfig; client.Service != nil || client.URL == nil {
		t.Errorf("after the change of endpoint: %v", client)
	}
}

func testForeignFields(t *testing.T, config *rest.Config) {
	k := newController(t, config, "foreign", []admission.Webhook{webhook(admission.TypeMutating, "a.foreign.example.com")})
	k.options.Recheck = 10 * time.Millisecond // to apply repeatedly
	k.start()
	k.registered()

	k.patch(`{"metadata":{"annotations":{"other":"1"},"labels":{"other":"2"}},"webhooks":[` +
		`{"name":"a.foreign.example.com","objectSelector":{"matchLabels":{"other":"3"}}}]}`)
	before := k.mutating()
	applies := k.metric("sallyport_registration_applies_total")
	k.eventually("more applies", func() bool { return k.metric("sallyport_registration_applies_total") > applies+6 })
	after := k.mutating()
	if after.Annotations["other"] != "1" || after.Labels["other"] != "2" || after.Webhooks[0].ObjectSelector.MatchLabels["other"] != "3" {
		t.Errorf("what another manager set is gone: %v %v %v", after.Annotations, after.Labels, after.Webhooks[0].ObjectSelector)
	}
	if before.ResourceVersion != after.ResourceVersion {
		t.Error("the object was written although nothing had changed")
	}
	if repairs := k.metric("sallyport_registration_repairs_total"); repairs != 0 {
		t.Errorf("%v repairs of fields that are not its own", repairs)
	}
}

func testDrift(t *testing.T, config *rest.Config) {
	k := newController(t, config, "drift", []admission.Webhook{
		webhook(admission.TypeMutating, "a.drift.example.com"), webhook(admission.TypeValidating, "b.drift.example.com"),
	})
	k.start()
	k.registered()

	other := authority(t, "other")
	live := k.mutating()
	live.Webhooks[0].ClientConfig.CABundle = other
	if _, err := k.client.MutatingWebhookConfigurations().Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	k.eventually("the CA bundle is back", func() bool {
		return bytes.Equal(k.mutating().Webhooks[0].ClientConfig.CABundle, k.bundle())
	})
	k.eventually("the repair is counted and logged", func() bool {
		return k.metric("sallyport_registration_repairs_total") == 1 && strings.Contains(k.log.String(), "manager=somebody")
	})

	if err := k.client.ValidatingWebhookConfigurations().Delete(t.Context(), "drift", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	k.eventually("the deleted configuration is back", func() bool {
		got, err := k.client.ValidatingWebhookConfigurations().Get(t.Context(), "drift", metav1.GetOptions{})
		return err == nil && len(got.Webhooks) == 1
	})
	k.eventually("the second repair is counted", func() bool { return k.metric("sallyport_registration_repairs_total") == 2 })
}

func testOrder(t *testing.T, config *rest.Config) {
	k := newController(t, config, "order", []admission.Webhook{
		webhook(admission.TypeMutating, "b.order.example.com"), webhook(admission.TypeMutating, "a.order.example.com"),
	})
	k.start()
	k.registered()
	want := []string{"b.order.example.com", "a.order.example.com"}
	if diff := cmp.Diff(want, k.names()); diff != "" {
		t.Fatalf("order (-want +got):\n%s", diff)
	}
	live := k.mutating()
	live.Webhooks[0], live.Webhooks[1] = live.Webhooks[1], live.Webhooks[0]
	if _, err := k.client.MutatingWebhookConfigurations().Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	k.eventually("the order is back", func() bool { return cmp.Equal(want, k.names()) })
}

func testDefinitions(t *testing.T, config *rest.Config) {
	first, second := webhook(admission.TypeMutating, "a.definitions.example.com"), webhook(admission.TypeMutating, "b.definitions.example.com")
	k := newController(t, config, "definitions", []admission.Webhook{first, second})
	k.start()
	k.registered()

	k.define(first)
	k.eventually("the second webhook is gone", func() bool { return cmp.Equal([]string{first.Name}, k.names()) })

	first.TimeoutSeconds = 9
	k.define(first)
	k.eventually("the timeout is the new one", func() bool { return *k.mutating().Webhooks[0].TimeoutSeconds == 9 })

	k.define()
	k.eventually("the configuration is gone", func() bool { return k.gone() })

	k.define(second)
	k.eventually("it is there again", func() bool { return !k.gone() && cmp.Equal([]string{second.Name}, k.names()) })
	if repairs := k.metric("sallyport_registration_repairs_total"); repairs != 0 {
		t.Errorf("%v own changes counted as repairs", repairs)
	}
}

func testLeftOvers(t *testing.T, config *rest.Config) {
	k := newController(t, config, "left-overs", []admission.Webhook{webhook(admission.TypeMutating, "a.left-overs.example.com")})
	k.start()
	k.registered()
	k.stop()
	if k.gone() {
		t.Fatal("the end of a controller removes its configurations")
	}
	k.define()
	k.start()
	k.eventually("the configuration is gone", func() bool { return k.gone() })
}

func testKeepsOthers(t *testing.T, config *rest.Config) {
	k := newController(t, config, "keeps", nil)
	theirs := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "keeps"}}
	if _, err := k.client.MutatingWebhookConfigurations().Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	k.start()
	k.registered()
	if k.gone() {
		t.Fatal("a configuration without our label was deleted")
	}

	k.define(webhook(admission.TypeMutating, "a.keeps.example.com"))
	k.eventually("our webhook is in it", func() bool { return cmp.Equal([]string{"a.keeps.example.com"}, k.names()) })
	k.patch(`{"webhooks":[{"name":"theirs.keeps.example.com","clientConfig":{"url":"https://127.0.0.1:1/"},` +
		`"sideEffects":"None","failurePolicy":"Ignore","admissionReviewVersions":["v1"]}]}`)
	k.define()
	k.eventually("only their webhook is in it", func() bool { return !k.gone() && cmp.Equal([]string{"theirs.keeps.example.com"}, k.names()) })
}

func testBundle(t *testing.T, config *rest.Config) {
	k := newController(t, config, "bundle", []admission.Webhook{webhook(admission.TypeMutating, "a.bundle.example.com")})
	k.setBundle(nil, errors.New("no authority yet"))
	k.start()
	k.eventually("the missing bundle is logged", func() bool { return strings.Contains(k.log.String(), "no authority yet") })
	if err := k.controller.Registered(); err == nil || !strings.Contains(err.Error(), "no authority yet") {
		t.Errorf("registered without a CA bundle: %v", err)
	}
	if !k.gone() {
		t.Error("a configuration was written without a CA bundle")
	}

	first := authority(t, "first")
	k.setBundle(first, nil)
	if err := k.controller.Registered(); err == nil {
		t.Error("registered before it was written")
	}
	k.controller.Notify()
	k.registered()

	second := append(authority(t, "second"), first...)
	k.setBundle(second, nil)
	if err := k.controller.Registered(); err == nil || !strings.Contains(err.Error(), "older CA bundle") {
		t.Errorf("registered with an older CA bundle: %v", err)
	}
	if value := k.metric("sallyport_registration_registered"); value != 0 {
		t.Errorf("sallyport_registration_registered is %v", value)
	}
	k.controller.Notify()
	k.registered()
	if !bytes.Equal(k.mutating().Webhooks[0].ClientConfig.CABundle, second) {
		t.Error("another CA bundle")
	}
	if value := k.metric("sallyport_registration_registered"); value != 1 {
		t.Errorf("sallyport_registration_registered is %v", value)
	}

	k.setBundle(nil, nil) // another manager owns it now, for example an injector
	k.controller.Notify()
	k.eventually("the field is left to others", func() bool { return len(k.mutating().Webhooks[0].ClientConfig.CABundle) == 0 })
}

func testRefused(t *testing.T, config *rest.Config) {
	bad := webhook(admission.TypeMutating, "a.refused.example.com")
	bad.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "broken", Expression: "object.("}}
	k := newController(t, config, "refused", []admission.Webhook{bad})
	k.start()
	k.eventually("the refusal is the status", func() bool {
		err := k.controller.Registered()
		return err != nil && strings.Contains(err.Error(), "matchConditions")
	})
	if err := k.controller.Refused(); err == nil || !strings.Contains(err.Error(), "the API server refuses the webhook configurations") {
		t.Errorf("refused: %v", err)
	}
	k.define(webhook(admission.TypeMutating, "a.refused.example.com"))
	k.registered()
	if err := k.controller.Refused(); err != nil {
		t.Errorf("refused after the first success: %v", err)
	}
	refusals := func() int { return strings.Count(k.log.String(), "is invalid") }
	before := refusals()
	k.define(bad)
	k.eventually("another refusal is logged", func() bool { return refusals() > before })
	if err := k.controller.Refused(); err != nil {
		t.Errorf("refused while an earlier version is there: %v", err)
	}

	// Invalid definitions leave the registered webhooks unchanged.
	k.define(admission.Webhook{Name: "x"})
	k.eventually("the mistake is logged", func() bool { return strings.Contains(k.log.String(), `webhook \"x\"`) })
	if k.gone() {
		t.Error("the configuration is gone")
	}
}

func testRights(t *testing.T, config *rest.Config) {
	admin := kubernetes.NewForConfigOrDie(config)
	rules := append(rbac.PolicyRules("rights"), rbac.ConversionPolicyRules("cogs.conversion.example.com")...)
	for _, rule := range rules {
		if len(rule.ResourceNames) != 1 {
			t.Errorf("rights on other objects too: %v", rule)
		}
	}
	if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "rights"}, Rules: rules,
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "rights"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "rights"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "controller"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limited := rest.CopyConfig(config)
	limited.Impersonate.UserName = "controller"

	k := newConverter(t, limited, "rights", "cogs")
	k.define(webhook(admission.TypeMutating, "a.rights.example.com"))
	k.crds = apiextensionsclient.NewForConfigOrDie(config).CustomResourceDefinitions() // the test's own, as the next
	k.create(definition("cogs"))
	k.client = kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1() // the test's own
	k.start()
	k.registered() // create
	if err := k.client.MutatingWebhookConfigurations().Delete(t.Context(), "rights", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	k.eventually("the deleted configuration is back", func() bool { return !k.gone() }) // list, watch
	k.patch(`{"webhooks":[{"name":"a.rights.example.com","timeoutSeconds":30}]}`)
	k.eventually("the timeout is back", func() bool { return *k.mutating().Webhooks[0].TimeoutSeconds == 5 }) // patch
	k.define()
	k.eventually("the configuration is gone", func() bool { return k.gone() }) // get, delete
	if k.stanza("cogs") == nil {
		t.Error("no conversion stanza")
	}
	if strings.Contains(k.log.String(), "forbidden") {
		t.Errorf("something was forbidden:\n%s", k.log)
	}
}

// harness is a controller under test with its inputs.
type harness struct {
	t          *testing.T
	options    registration.Options
	controller *registration.Controller
	client     admissionregistrationclient.AdmissionregistrationV1Interface
	registry   *prometheus.Registry
	log        *lab.Log
	stop       func()

	mu       sync.Mutex
	webhooks []admission.Webhook
	ca       []byte
	caErr    error
}

func newController(t *testing.T, config *rest.Config, name string, webhooks []admission.Webhook) *harness {
	t.Helper()
	k := &harness{t: t, webhooks: webhooks, ca: authority(t, name), log: &lab.Log{}}
	client := kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1()
	k.client = client
	k.options = registration.Options{
		Config: outside(name),
		Client: client,
		Webhooks: func() []admission.Webhook {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.webhooks
		},
		CABundle: func() ([]byte, error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.ca, k.caErr
		},
		Logger: slog.New(slog.NewTextHandler(k.log, nil)),
	}
	return k
}

// start runs a controller until stop, or the end of the test.
func (k *harness) start() {
	k.t.Helper()
	k.registry = prometheus.NewRegistry()
	k.options.Registry = k.registry
	controller, err := registration.NewController(k.options)
	if err != nil {
		k.t.Fatal(err)
	}
	k.controller = controller
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx) }()
	k.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			k.t.Errorf("the controller ended with %v", err)
		}
	})
	k.t.Cleanup(k.stop)
}

func (k *harness) registered() {
	k.t.Helper()
	k.eventually("registered", func() bool { return k.controller.Registered() == nil })
}

func (k *harness) eventually(what string, ok func() bool) {
	k.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			k.t.Fatalf("never: %s; status: %v; log:\n%s", what, k.controller.Registered(), k.log)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (k *harness) define(webhooks ...admission.Webhook) {
	k.mu.Lock()
	k.webhooks = webhooks
	k.mu.Unlock()
	if k.controller != nil {
		k.controller.Notify()
	}
}

func (k *harness) bundle() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ca
}

func (k *harness) setBundle(ca []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ca, k.caErr = ca, err
}

func (k *harness) mutating() *admissionregistrationv1.MutatingWebhookConfiguration {
	k.t.Helper()
	got, err := k.client.MutatingWebhookConfigurations().Get(k.t.Context(), k.options.Config.Name, metav1.GetOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

func (k *harness) validating() *admissionregistrationv1.ValidatingWebhookConfiguration {
	k.t.Helper()
	got, err := k.client.ValidatingWebhookConfigurations().Get(k.t.Context(), k.options.Config.Name, metav1.GetOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

func (k *harness) gone() bool {
	k.t.Helper()
	_, err := k.client.MutatingWebhookConfigurations().Get(k.t.Context(), k.options.Config.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		k.t.Fatal(err)
	}
	return err != nil
}

func (k *harness) names() []string {
	k.t.Helper()
	var names []string
	for _, w := range k.mutating().Webhooks {
		names = append(names, w.Name)
	}
	return names
}

// patch changes the mutating configuration as another manager.
func (k *harness) patch(merge string) {
	k.t.Helper()
	_, err := k.client.MutatingWebhookConfigurations().Patch(k.t.Context(), k.options.Config.Name,
		types.StrategicMergePatchType, []byte(merge), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		k.t.Fatal(err)
	}
}

// metric sums a metric over its labels.
func (k *harness) metric(name string) float64 {
	k.t.Helper()
	families, err := k.registry.Gather()
	if err != nil {
		k.t.Fatal(err)
	}
	var sum float64
	for _, family := range families {
		if family.GetName() == name {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// A controller that cannot reach the API server keeps retrying, and stops without leaking a
// goroutine.
func TestControllerEndsCleanlyWhileTheAPIServerIsAway(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	k := newController(t, &rest.Config{Host: fmt.Sprint("http://127.0.0.1:", freeport.For(t))}, "away",
		[]admission.Webhook{webhook(admission.TypeMutating, "a.away.example.com")})
	k.start()
	k.eventually("the failure is the status", func() bool {
		err := k.controller.Registered()
		return err != nil && strings.Contains(err.Error(), "connection refused")
	})
	k.stop()
}
