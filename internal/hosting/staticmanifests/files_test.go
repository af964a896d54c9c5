// SPDX-License-Identifier: Apache-2.0

package staticmanifests_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting/staticmanifests"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

func TestNewFilesReportsEveryProblem(t *testing.T) {
	config := registration.Config{Name: "a.static.k8s.io", Endpoint: registration.Endpoint{Service: &registration.Service{Namespace: "n", Name: "s"}}}
	_, err := staticmanifests.New(staticmanifests.Options{Config: config, Directory: "here", Recheck: -1})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"suffix .static.k8s.io", "does not allow a service", "absolute path", "Webhooks", "CABundle", "recheck"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

// files is a Files under test.
type files struct {
	*staticmanifests.Files
	t        *testing.T
	options  staticmanifests.Options
	webhooks atomic.Pointer[[]admission.Webhook]
	ca       atomic.Pointer[[]byte]
}

func newFiles(t *testing.T, name string, ca []byte, webhooks ...admission.Webhook) *files {
	f := &files{t: t}
	f.webhooks.Store(&webhooks)
	f.ca.Store(&ca)
	f.options = staticmanifests.Options{
		Config: outside(name), Directory: t.TempDir(), Recheck: 10 * time.Millisecond,
		Webhooks: func() []admission.Webhook { return *f.webhooks.Load() },
		CABundle: func() ([]byte, error) {
			if ca := *f.ca.Load(); ca != nil {
				return ca, nil
			}
			return nil, errors.New("no authority yet")
		},
		Logger: slog.New(slog.DiscardHandler),
	}
	return f
}

func (f *files) start() {
	f.t.Helper()
	f.Files = must(staticmanifests.New(f.options))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
}

func (f *files) eventually(what string, ok func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("never: %s; status: %v", what, f.Registered())
		}
	}
}

func (f *files) path(folder string) string {
	return filepath.Join(f.options.Directory, folder, f.options.Config.Name+".static.k8s.io.yaml")
}

func (f *files) read(folder string) string {
	data, err := os.ReadFile(f.path(folder))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.t.Fatal(err)
	}
	return string(data)
}

func TestFilesAreKeptTrue(t *testing.T) {
	f := newFiles(t, "kept", nil, webhook(admission.TypeMutating, "a.kept.example.com", "pods"))
	f.start()
	f.eventually("the missing bundle is the status", func() bool {
		err := f.Registered()
		return err != nil && strings.Contains(err.Error(), "no authority yet")
	})
	f.eventually("the folders are there", func() bool {
		_, err := os.Stat(filepath.Join(f.options.Directory, "validating"))
		return err == nil
	})
	if f.read("mutating") != "" {
		t.Fatal("written without a CA bundle")
	}
	f.ca.Store(new(authority(t)))
	f.Notify()
	f.eventually("registered", func() bool { return f.Registered() == nil })
	first := f.read("mutating")
	if !strings.Contains(first, "name: kept.static.k8s.io\n") || !strings.Contains(first, "url: https://127.0.0.1:9443/a.kept.example.com") {
		t.Errorf("written:\n%s", first)
	}

	if err := os.WriteFile(f.path("mutating"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.eventually("it is put right", func() bool { return f.read("mutating") == first })
	if err := os.Remove(f.path("mutating")); err != nil {
		t.Fatal(err)
	}
	f.eventually("it is there again", func() bool { return f.read("mutating") == first })

	f.ca.Store(new(authority(t)))
	f.Notify()
	f.eventually("the next bundle is there", func() bool { return f.Registered() == nil && f.read("mutating") != first })

	// A file of that name without our label is preserved.
	if err := os.WriteFile(f.path("validating"), []byte("metadata: {name: theirs}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.webhooks.Store(&[]admission.Webhook{})
	f.Notify()
	f.eventually("the file is gone", func() bool { return f.read("mutating") == "" })
	if f.read("validating") == "" {
		t.Error("a file that is not ours is gone")
	}
	entries, err := filepath.Glob(filepath.Join(f.options.Directory, "*", ".*"))
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// kube-apiserver calls webhooks of static manifests, and observes changes of the files.
func TestStaticManifestsOnARealAPIServer(t *testing.T) {
	gates, supported := lab.StaticManifests(t)
	if !supported {
		return
	}
	ca, certificate := serverCertificate(t)
	var calls atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		http.Error(w, "called", http.StatusTeapot)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)

	w := webhook(admission.TypeValidating, "a.static.example.com", "configmaps")
	w.FailurePolicy, w.AllowWedge = "Fail", "the server of the test goes with the API server"
	f := newFiles(t, "static", ca, w, webhook(admission.TypeMutating, "b.static.example.com", "pods"))
	f.options.Config.Endpoint.URL = server.URL
	f.start()
	f.eventually("registered", func() bool { return f.Registered() == nil })

	config := filepath.Join(t.TempDir(), "admission.yaml")
	plugin := func(name, folder string) string {
		return fmt.Sprintf(`- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: ""
    staticManifestsDir: %s
`, name, filepath.Join(f.options.Directory, folder))
	}
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n" +
		plugin("MutatingAdmissionWebhook", "mutating") + plugin("ValidatingAdmissionWebhook", "validating")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(sallyporttest.StartAPIServer(t,
		sallyporttest.WithAPIServerFlag("admission-control-config-file", config), sallyporttest.WithAPIServerFlag("feature-gates", gates)))
	create := func() error {
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := create(); err == nil || !strings.Contains(err.Error(), "a.static.example.com") {
		t.Errorf("the API server did not ask the webhook: %v", err)
	}
	if calls.Load() == 0 {
		t.Error("the webhook was not called")
	}
	f.webhooks.Store(&[]admission.Webhook{})
	f.Notify()
	for deadline := time.Now().Add(3 * time.Minute); create() != nil; time.Sleep(time.Second) { // kube-apiserver rereads them once a minute
		if time.Now().After(deadline) {
			t.Fatal("the API server still asks a webhook whose file is gone")
		}
	}
}

// serverCertificate returns a certificate for 127.0.0.1, and its CA in PEM.
func serverCertificate(t *testing.T) ([]byte, tls.Certificate) {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "static"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func authority(t *testing.T) []byte {
	ca, _ := serverCertificate(t)
	return ca
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// patience limits how long a test waits for an event. The test continues as soon as it happens.
const patience = 30 * time.Second

func outside(name string) registration.Config {
	return registration.Config{Name: name, Endpoint: registration.Endpoint{URL: "https://127.0.0.1:9443"}}
}

func webhook(kind admission.Type, name, resource string) admission.Webhook {
	return admission.Webhook{
		Name: name, Type: kind, Path: "/" + name, FailurePolicy: admissionregistrationv1.Ignore,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
		}},
		Handler: admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) { return nil, nil }),
	}
}

// A webhook with a backstop fails closed, because there are no policies with parameters in files.
func TestABackstopIsNoPartOfStaticManifests(t *testing.T) {
	guarded := webhook(admission.TypeMutating, "inject.pods.example.com", "pods")
	guarded.FailurePolicy, guarded.AllowWedge = admissionregistrationv1.Fail, "a test"
	guarded.Backstop = &admission.Backstop{
		ParamName: "index", Param: admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "PodTemplate"},
		Validations: []admissionregistrationv1.Validation{{Expression: "true", Message: "no"}},
	}
	objects, err := staticmanifests.Manifests(outside("hooks"), []admission.Webhook{guarded}, nil)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%v: %v", err, objects)
	}
	if policy := objects[0].(*admissionregistrationv1.MutatingWebhookConfiguration).Webhooks[0].FailurePolicy; policy == nil || *policy != admissionregistrationv1.Fail {
		t.Errorf("failurePolicy %v", policy)
	}
}
