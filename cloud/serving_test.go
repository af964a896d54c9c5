// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/fake"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
)

// reviews returns the number of reviews with an outcome.
func reviews(t *testing.T, outcome string) float64 {
	t.Helper()
	return counted(t, "sallyport_admission_reviews_total", "outcome", outcome)
}

// counted returns a counter of the process's metrics, with a label of that value.
func counted(t *testing.T, name, label, value string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, l := range metric.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					return metric.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

func TestAVolumeIsLabelledAndCounted(t *testing.T) {
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf))
	status, resp, body := m.review(pvlPath, "", nil, gceVolume("a"))
	if status != http.StatusOK || !resp.Allowed || !strings.Contains(string(resp.Patch), "zone-a") || resp.UID != "u" {
		t.Errorf("%d %s", status, body)
	}
	if got := processMetrics(t); !strings.Contains(got, `cloud_provider_webhook_request_total{code="200",webhook="persistentvolumelabel"} `) ||
		!strings.Contains(got, `cloud_provider_webhook_request_duration_seconds_count{code="200",webhook="persistentvolumelabel"} `) {
		t.Errorf("upstream's metrics are\n%s", got)
	}
	if n := reviews(t, "patched"); n != 1 {
		t.Errorf("%v successes are counted", n)
	}
	if n := counted(t, "sallyport_cloud_calls_total", "result", "labels"); n != 1 {
		t.Errorf("%v calls to the cloud are counted", n)
	}
	if err := m.end(); err != nil {
		t.Fatal(err)
	}
	// Another run of the process can register its metrics.
	start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf))
}

func TestAnErrorOfTheCloudIsADecision(t *testing.T) {
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(func(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
		return nil, errors.New("no such disk")
	}))
	status, resp, body := m.review(pvlPath, "", nil, gceVolume("a"))
	if status != http.StatusOK || resp.Allowed || resp.Result.Code != http.StatusForbidden || !strings.Contains(resp.Result.Message, "no such disk") {
		t.Errorf("%d %s", status, body)
	}
	if n := reviews(t, "denied"); n != 1 {
		t.Errorf("%v denials are counted", n)
	}
}

func TestAPanicOfTheCloudIsAFault(t *testing.T) {
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(func(_ context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
		return nil, errors.New(pv.Spec.AWSElasticBlockStore.VolumeID)
	}))
	for range 2 {
		if status, _, body := m.review(pvlPath, "", nil, gceVolume("a")); status != http.StatusInternalServerError || !strings.Contains(body, "panicked") {
			t.Errorf("%d %s", status, body)
		}
	}
}

func TestAPanicOfAHandlerIsAFault(t *testing.T) {
	r := registry(t)
	err := r.Register("panics", services, func(Dependencies) (admission.Handler, error) {
		return admission.Mutate(func(context.Context, *corev1.PersistentVolume) error { panic("canary") }), nil
	}, WithDefinition(func(w *admission.Webhook) {
		w.Rules = admission.Rules(corev1.SchemeGroupVersion.WithResource("persistentvolumes"))
	}))
	if err != nil {
		t.Fatal(err)
	}
	m := start(t, r, labelling(zoneOf))
	if status, _, body := m.review("/panics", "", nil, gceVolume("a")); status != http.StatusInternalServerError || strings.Contains(body, "canary") {
		t.Errorf("%d %s", status, body)
	}
}

func TestACloudThatHangsEndsWithTheTimeoutOfTheCall(t *testing.T) {
	hanging := make(chan struct{})
	defer close(hanging)
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(func(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
		<-hanging // whatever the context says
		return nil, nil
	}))
	// Without a deadline this would not return before the end of the test.
	if status, _, body := m.review(pvlPath, "?timeout=1s", nil, gceVolume("a")); status != http.StatusGatewayTimeout {
		t.Errorf("%d %s", status, body)
	}
}

func TestABodyThatIsTooLargeIsRefused(t *testing.T) {
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), "--webhook-max-body-bytes=10000")
	large := gceVolume("a")
	large.Annotations = map[string]string{"a": strings.Repeat("x", 10000)}
	if status, _, body := m.review(pvlPath, "", nil, large); status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", status, body)
	}
}

func TestOnlyLoopbackIsListenedOnIfNothingIsSaid(t *testing.T) {
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf))
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		ip := address.(*net.IPNet).IP
		if ip.IsLoopback() || ip.To4() == nil {
			continue
		}
		if conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", ip, m.port), time.Second); err == nil {
			_ = conn.Close()
			t.Errorf("somebody listens on %s", ip)
		}
	}
}

func TestOnlyWhoHasACertificateOfTheCAWithARightNameMayCall(t *testing.T) {
	authority, other := newCA(t), newCA(t)
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf),
		"--webhook-bind-address=0.0.0.0", "--webhook-authentication=ClientCA",
		"--webhook-client-ca-file="+file(t, "ca.crt", authority.pem()), "--webhook-client-common-names=kube-apiserver")
	for _, tc := range []struct {
		name        string
		certificate *tls.Certificate
		want        int
	}{
		{"nobody", nil, http.StatusUnauthorized},
		{"somebody of another CA", other.issue("kube-apiserver"), http.StatusUnauthorized},
		{"somebody else of the CA", authority.issue("somebody"), http.StatusForbidden},
		{"the API server", authority.issue("kube-apiserver"), http.StatusOK},
	} {
		if status, _, body := m.review(pvlPath, "", tc.certificate, gceVolume("a")); status != tc.want {
			t.Errorf("%s: %d %s", tc.name, status, body)
		}
	}
}

func TestTheCertificateIsThatOfTheName(t *testing.T) {
	authority := newCA(t)
	certFile, keyFile := authority.files(authority.issue("usual", "localhost"))
	namedCert, namedKey := authority.files(authority.issue("in the certificate", "a.example.com"))
	patternCert, patternKey := authority.files(authority.issue("by a pattern", "b.example.com"))
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), "--webhook-tls-cert-file="+certFile, "--webhook-tls-private-key-file="+keyFile,
		"--webhook-tls-sni-cert-key="+namedCert+","+namedKey, "--webhook-tls-sni-cert-key="+patternCert+","+patternKey+":*.example.org,c.example.com",
		"--webhook-tls-min-version=VersionTLS13")
	for name, want := range map[string]string{
		"localhost": "usual", "": "usual", "a.example.com": "in the certificate", "c.example.com": "by a pattern", "x.example.org": "by a pattern",
		"b.example.com": "usual", // the patterns are all that counts
	} {
		conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", m.port), &tls.Config{InsecureSkipVerify: true, ServerName: name})
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
		_ = conn.Close()
	}
	if conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", m.port), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.2 is spoken")
	}
}

// authorityOf returns the CA in the static manifests that a process has written.
func authorityOf(t *testing.T, dir string) string {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		files, _ := filepath.Glob(filepath.Join(dir, "mutating", "*.yaml")) // no file that is being written
		if len(files) == 1 {
			data, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				if value, ok := strings.CutPrefix(strings.TrimSpace(line), "caBundle: "); ok {
					return value
				}
			}
			t.Fatalf("no caBundle in\n%s", data)
		}
		select {
		case <-deadline:
			t.Fatalf("no manifest in %s: %v", dir, files)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestAFolderKeepsTheAuthorityOverARestart(t *testing.T) {
	certificates, manifests := filepath.Join(t.TempDir(), "certificates"), t.TempDir()
	flags := []string{"--webhook-cert-dir=" + certificates, "--webhook-registration=Manifest", "--webhook-static-manifests-dir=" + manifests}
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), flags...)
	first := authorityOf(t, manifests)
	if err := m.end(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(manifests, "mutating")); err != nil {
		t.Fatal(err)
	}
	start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), flags...)
	if second := authorityOf(t, manifests); second != first {
		t.Error("the authority is another one")
	}
	entries, err := filepath.Glob(filepath.Join(certificates, "*"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if info, err := os.Stat(entries[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the key: %v, %v", info.Mode(), err)
	}
}

func TestAPairInTheFolderIsTheCertificate(t *testing.T) {
	authority, dir := newCA(t), t.TempDir()
	certFile, keyFile := authority.files(authority.issue("of the folder", "localhost"))
	for from, to := range map[string]string{certFile: "cloud-controller-manager-webhook.crt", keyFile: "cloud-controller-manager-webhook.key"} {
		if err := os.Rename(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), "--webhook-cert-dir="+dir)
	pool := x509.NewCertPool()
	pool.AddCert(authority.cert)
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", m.port), &tls.Config{RootCAs: pool, ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// needsCloud is a webhook that reports how often its cloud was initialized.
func needsCloud(seen *atomic.Int32) func(Dependencies) (admission.Handler, error) {
	return func(d Dependencies) (admission.Handler, error) {
		seen.Store(int32(d.Cloud.(*testCloud).initializations()))
		if d.Client == nil || d.Informers == nil || d.Recorder == nil || d.Logger == nil {
			return nil, errors.New("something is missing")
		}
		return allowing(d)
	}
}

func TestAWebhookThatNeedsTheCloudWaitsForIt(t *testing.T) {
	initialized := make(chan struct{})
	var seen atomic.Int32
	r := registry(t)
	if err := r.Register("needs", services, needsCloud(&seen), WithInitializedCloud()); err != nil {
		t.Fatal(err)
	}
	m := launch(t, r, func(*config.CompletedConfig) cloudprovider.Interface {
		return &testCloud{Cloud: &fake.Cloud{}, block: initialized}
	})
	deadline := time.Now().Add(time.Minute)
	for { // it answers before it can decide
		resp, err := m.client(nil).Post(m.url("/needs"), "application/json", strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE"}}`))
		if err == nil {
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			if strings.Contains(string(body), "waiting for the cloud") {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the port is not open: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	resp, err := m.client(nil).Get(m.url("/readyz"))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "[-] needs: the webhook is waiting for the cloud") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	close(initialized)
	m.awaitReady()
	if status, resp, body := m.review("/needs", "", nil, gceVolume("a")); status != http.StatusOK || !resp.Allowed {
		t.Errorf("%d %s", status, body)
	}
	if seen.Load() != 1 {
		t.Errorf("New is called with a cloud that was initialised %d times", seen.Load())
	}
}

func TestACloudThatPanicsWhileItIsInitializedEndsTheManager(t *testing.T) {
	r := registry(t)
	var seen atomic.Int32
	if err := r.Register("needs", services, needsCloud(&seen), WithInitializedCloud()); err != nil {
		t.Fatal(err)
	}
	refused(t, r, func(*config.CompletedConfig) cloudprovider.Interface { return &panicking{} }, aloneFlags(t, freeport.For(t)),
		"the cloud provider panicking panicked during initialization")
}

type panicking struct{ cloudprovider.Interface }

func (*panicking) ProviderName() string { return "panicking" }
func (*panicking) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {
	panic("no credentials")
}

// A handler is called once its informers have synced. This API server never sends
// anything.
func TestAWebhookThatReadsFromTheClusterWaitsForIt(t *testing.T) {
	r := registry(t)
	err := r.Register("reads", services, func(d Dependencies) (admission.Handler, error) {
		d.Informers.Core().V1().Nodes().Informer()
		return allowing(d)
	})
	if err != nil {
		t.Fatal(err)
	}
	m := launch(t, r, labelling(zoneOf))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if resp, err := m.client(nil).Get(m.url("/readyz")); err == nil {
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "[-] reads") {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the port is not open")
		}
	}
}

func TestEitherGateIsEnough(t *testing.T) {
	start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), "--feature-gates=CloudControllerManagerWebhook=false,CloudWebhookServer=true")
}

func TestAProgramWithoutControllersServesItsWebhooks(t *testing.T) {
	port, stop := freeport.For(t), make(chan struct{})
	m := &manager{t: t, port: port, stop: stop, ended: make(chan error, 1)}
	command := commandWithoutControllers(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), stop)
	var flags []string
	for _, flag := range aloneFlags(t, port) {
		if !strings.HasPrefix(flag, "--webhooks=") && !strings.HasPrefix(flag, "--controllers=") {
			flags = append(flags, flag)
		}
	}
	command.SetArgs(flags)
	go func() { m.ended <- command.Execute() }()
	t.Cleanup(func() { _ = m.end() })
	m.awaitReady()
}
