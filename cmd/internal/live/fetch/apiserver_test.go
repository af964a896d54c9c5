// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/lab/kubelet"
	"github.com/sallyport-io/sallyport/cmd/internal/live/fetch"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/recording"
	"github.com/sallyport-io/sallyport/internal/hosting/delegated"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/serving"
	"github.com/sallyport-io/sallyport/test/lab"
)

const namespace, limit = "default", time.Minute

// replica is a pod that records reviews.
type replica struct {
	t        *testing.T
	recorder *recording.Recorder
	metrics  net.Addr
}

// start runs a replica that asks the API server who may read what it has recorded.
func start(t *testing.T, config *rest.Config, certificate *tls.Certificate, recent int32) *replica {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(config)
	readers, err := delegated.New(client)
	if err != nil {
		t.Fatal(err)
	}
	discard := slog.New(slog.DiscardHandler)
	r := &replica{t: t}
	r.recorder, err = recording.New(configv1alpha1.Recording{
		SamplingRatePerMillion: 1_000_000, RecentReviews: recent, RecentMegabytes: 1,
	}, discard, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	options := serving.DefaultOptions()
	options.BindAddress, options.SecurePort, options.MetricsBindAddress = "127.0.0.1", 0, "127.0.0.1:0"
	options.DrainMin, options.DrainTimeout, options.Logger = 0, 0, discard
	options.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
	options.AuthenticateMetrics, options.ClientCertificates = readers.Authenticate, true
	options.MetricsRoutes = map[string]http.Handler{recording.RecentPath: r.recorder.Recent()}
	server, err := serving.New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.metrics = server.MetricsAddr()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	for _, run := range []func(context.Context) error{server.Run, r.recorder.Run, readers.Run} {
		group.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { cancel(); group.Wait() })
	lab.Eventually(t.Context(), t, limit, "the client CA of the cluster to be known", func(context.Context) (bool, error) {
		return readers.Ready() == nil, nil
	})
	return r
}

// record has reviews recorded.
func (r *replica) record(uids ...string) {
	r.t.Helper()
	allow := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Allowed(), nil
	})
	for _, uid := range uids {
		request := &admissionv1.AdmissionRequest{
			UID: types.UID(uid), Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Operation: admissionv1.Create,
			Object: runtime.RawExtension{Raw: []byte(`{"kind":"Pod","spec":{"containers":[{"env":[{"name":"TOKEN","value":"s3cret"}]}]}}`)},
		}
		if _, err := r.recorder.Handle(r.t.Context(), "check.example.com", request, allow); err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // the time of a review has microseconds
	}
}

// world is a Service with two replicas, and the kubelet through which they are reached.
func world(t *testing.T, cluster *rest.Config) (first, second *replica) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(cluster)
	bundle, key, err := certutil.GenerateSelfSignedCertKey("hooks."+namespace+".svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(bundle, key)
	if err != nil {
		t.Fatal(err)
	}
	first, second = start(t, cluster, &certificate, 3), start(t, cluster, &certificate, 3)
	pods := map[string]net.Addr{namespace + "/first": first.metrics, namespace + "/second": second.metrics}
	host := kubelet.Start(t, client, func(ctx context.Context, pod, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", pods[pod].String())
	})
	create := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create(client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "check.example.com", SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "hooks"}},
		}},
	}, metav1.CreateOptions{}))
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "hooks-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hooks"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i, name := range []string{"first", "second"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: host.Node, Containers: []corev1.Container{{Name: "main", Image: "x"}}}}
		create(client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}))
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("192.0.2.%d", i+1)}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name},
		})
	}
	create(client.DiscoveryV1().EndpointSlices(namespace).Create(t.Context(), slice, metav1.CreateOptions{}))
	for _, name := range []string{"reader", "stranger"} {
		create(client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
	}
	create(client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "recordings"}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{recording.RecentPath}, Verbs: []string{delegated.MetricsVerb}}},
	}, metav1.CreateOptions{}))
	create(client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "recordings"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "recordings"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"}},
	}, metav1.CreateOptions{}))
	return first, second
}

// uids are the requests in what was fetched, in its order.
func uids(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(line, `"request":{"uid":"`)
		uid, _, _ := strings.Cut(rest, `"`)
		out = append(out, uid)
	}
	return strings.Join(out, " ")
}

// It starts an API server of its own: it makes a node, with a kubelet.
func TestRecentReviewsAreFetchedOnARealAPIServer(t *testing.T) {
	config := sallyporttest.StartAPIServer(t)
	first, second := world(t, config)
	c, err := cluster.New(config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	get := func(ctx context.Context, change func(*fetch.Options)) (reviews, notes string, err error) {
		var out, messages bytes.Buffer
		o := fetch.Options{Cluster: c, Configuration: "hooks", Port: 8080, Notes: &messages}
		change(&o)
		err = fetch.Run(ctx, o, &out)
		return out.String(), messages.String(), err
	}
	expect := func(what, want string, change func(*fetch.Options)) {
		t.Helper()
		var reviews, notes string
		lab.Eventually(t.Context(), t, limit, what, func(ctx context.Context) (bool, error) { // rights and reviews take a moment
			var err error
			reviews, notes, err = get(ctx, change)
			if err == nil && uids(reviews) != want {
				err = fmt.Errorf("got %q, want %q (%s)", uids(reviews), want, notes)
			}
			return err == nil, err
		})
		if strings.Contains(reviews, "s3cret") || strings.Count(reviews, `"REDACTED"`) != strings.Count(reviews, "\n") {
			t.Errorf("%s: not redacted:\n%s", what, reviews)
		}
	}
	as := func(account string) func(*fetch.Options) {
		return func(o *fetch.Options) { o.ServiceAccount = namespace + "/" + account }
	}
	first.record("1")
	second.record("2")
	first.record("3")
	expect("the user's client certificate", "1 2 3", func(*fetch.Options) {})
	expect("the token of a reader", "1 2 3", as("reader"))

	refused := func(what, want string, change func(*fetch.Options)) {
		t.Helper()
		reviews, _, err := get(t.Context(), change)
		if err == nil || !strings.Contains(err.Error(), want) || reviews != "" {
			t.Errorf("%s: got error %v and %q, want %q", what, err, reviews, want)
		}
	}
	refused("someone without the right", "you may not read the recent reviews", as("stranger"))
	refused("an account that does not exist", "request a token of the service account default/nobody", as("nobody"))
	anonymous, err := cluster.New(rest.AnonymousClientConfig(config), namespace)
	if err != nil {
		t.Fatal(err)
	}
	refused("a user without credentials", "read the webhook configurations", func(o *fetch.Options) { o.Cluster = anonymous })
	refused("a certificate of another CA", "certificate signed by unknown authority", func(o *fetch.Options) { o.CABundle = config.CAData })
	refused("no configuration", "there is no webhook configuration other", func(o *fetch.Options) { o.Configuration = "other" })

	// Four reviews do not fit into a memory for three.
	first.record("4", "5")
	expect("without the oldest", "2 3 4 5", func(*fetch.Options) {})

	// A replica that does not answer is reported; those of the other are written.
	gone := "https://127.0.0.1:1"
	reviews, _, err := get(t.Context(), func(o *fetch.Options) { o.Replicas = []string{"https://" + first.metrics.String(), gone} })
	if err == nil || !strings.Contains(err.Error(), gone) || uids(reviews) != "3 4 5" {
		t.Errorf("one of two: %v, %q", err, uids(reviews))
	}

	// What is recorded meanwhile is written once, and interrupting ends without an error.
	ctx, interrupt := context.WithCancel(t.Context())
	var during sync.WaitGroup
	during.Go(func() {
		defer interrupt()
		for i := range 3 {
			second.record(fmt.Sprint("later-", i))
			if !lab.Sleep(ctx, 3*time.Second) { // each round takes 2
				return
			}
		}
	})
	reviews, notes, err := get(ctx, func(o *fetch.Options) { o.For = limit })
	during.Wait()
	got := uids(reviews)
	for _, uid := range []string{"2", "3", "4", "5", "later-0", "later-1", "later-2"} {
		if strings.Count(" "+got+" ", " "+uid+" ") != 1 {
			t.Errorf("%s is not there once", uid)
		}
	}
	if err != nil || !strings.Contains(notes, "replicas: 2") {
		t.Errorf("for a while: %v, %q, %s", err, got, notes)
	}
}
