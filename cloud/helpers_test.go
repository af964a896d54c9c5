// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/fake"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
)

const (
	gate    = "--feature-gates=CloudControllerManagerWebhook=true,CloudWebhookServer=false"
	gateOff = "--feature-gates=CloudControllerManagerWebhook=false,CloudWebhookServer=false"
	pvlPath = "/mutate-persistentvolumelabel"
)

// testCloud is a cloud whose labels a test defines.
type testCloud struct {
	*fake.Cloud
	label func(context.Context, *corev1.PersistentVolume) (map[string]string, error)

	mu          sync.Mutex
	initialized int
	block       <-chan struct{} // Initialize waits for it
}

func (c *testCloud) GetLabelsForVolume(ctx context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
	return c.label(ctx, pv)
}

func (c *testCloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {
	if c.block != nil {
		<-c.block
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.initialized++
}

func (c *testCloud) initializations() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.initialized
}

func zoneOf(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
	return map[string]string{corev1.LabelTopologyZone: "zone-a", corev1.LabelTopologyRegion: "region-1"}, nil
}

func labelling(label func(context.Context, *corev1.PersistentVolume) (map[string]string, error)) app.InitCloudFunc {
	return func(*config.CompletedConfig) cloudprovider.Interface {
		return &testCloud{Cloud: &fake.Cloud{}, label: label}
	}
}

// manager is a running command with only webhooks.
type manager struct {
	t     *testing.T
	port  int
	stop  chan struct{}
	ended chan error
}

// TestMain lets all commands of this process configure its log, as long as they do so
// identically. Resetting it would race with goroutines that upstream leaves running.
func TestMain(m *testing.M) {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	os.Exit(m.Run())
}

// build makes the command of a registry with the usual options.
func build(t *testing.T, r *Registry, initialize app.InitCloudFunc, stop <-chan struct{}) *cobra.Command {
	t.Helper()
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	command, err := r.Command(opts, initialize, app.DefaultInitFuncConstructors, nil, cliflag.NamedFlagSets{}, stop)
	if err != nil {
		t.Fatal(err)
	}
	return command
}

func commandWithoutControllers(t *testing.T, r *Registry, initialize app.InitCloudFunc, stop <-chan struct{}) *cobra.Command {
	t.Helper()
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	command, err := r.Command(opts, initialize, nil, nil, cliflag.NamedFlagSets{}, stop)
	if err != nil {
		t.Fatal(err)
	}
	return command
}

func registry(t *testing.T, webhooks ...Webhook) *Registry {
	t.Helper()
	r, err := New(webhooks...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// aloneFlags are flags of a process without controllers and API server.
func aloneFlags(t *testing.T, port int) []string {
	t.Helper()
	return []string{
		gate, "--controllers=-*", "--webhooks=*", "--cloud-provider=test", "--kubeconfig=" + nowhere(t),
		fmt.Sprint("--webhook-secure-port=", port), "--webhook-registration=None", "--webhook-drain-min=0s", "--webhook-drain-timeout=0s",
	}
}

// nowhere is a kubeconfig of a nonexistent API server.
func nowhere(t *testing.T) string {
	t.Helper()
	return file(t, "kubeconfig", `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {token: t}}]
`)
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// start runs a registry's command and waits until it answers.
func start(t *testing.T, r *Registry, initialize app.InitCloudFunc, more ...string) *manager {
	t.Helper()
	m := launch(t, r, initialize, more...)
	m.awaitReady()
	return m
}

func launch(t *testing.T, r *Registry, initialize app.InitCloudFunc, more ...string) *manager {
	t.Helper()
	return launchAt(t, freeport.For(t), r, initialize, more...)
}

func launchAt(t *testing.T, port int, r *Registry, initialize app.InitCloudFunc, more ...string) *manager {
	t.Helper()
	m := &manager{t: t, port: port, stop: make(chan struct{}), ended: make(chan error, 1)}
	command := build(t, r, initialize, m.stop)
	command.SetArgs(append(aloneFlags(t, m.port), more...))
	command.SilenceErrors, command.SilenceUsage = true, true
	go func() { m.ended <- command.Execute() }()
	t.Cleanup(func() { _ = m.end() })
	return m
}

// end stops the manager and returns its result.
func (m *manager) end() error {
	select {
	case <-m.stop:
		return nil
	default:
	}
	close(m.stop)
	select {
	case err := <-m.ended:
		if err != nil {
			m.t.Errorf("the manager ended with %v", err)
		}
		return err
	case <-time.After(time.Minute):
		m.t.Error("the manager does not end")
		return nil
	}
}

func (m *manager) awaitReady() {
	m.t.Helper()
	deadline := time.After(time.Minute)
	for {
		status, body := 0, ""
		if resp, err := m.client(nil).Get(m.url("/readyz")); err == nil {
			raw, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			status, body = resp.StatusCode, string(raw)
		}
		if status == http.StatusOK {
			return
		}
		select {
		case err := <-m.ended:
			close(m.stop)
			m.t.Fatalf("the manager has ended: %v", err)
		case <-deadline:
			m.t.Fatalf("not ready: %d %s", status, body)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (m *manager) url(path string) string { return fmt.Sprintf("https://127.0.0.1:%d%s", m.port, path) }

func (m *manager) client(certificate *tls.Certificate) *http.Client {
	config := &tls.Config{InsecureSkipVerify: true} // who serves is tested with a real API server
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: time.Minute}
}

// review sends a volume like an API server.
func (m *manager) review(path, query string, certificate *tls.Certificate, pv *corev1.PersistentVolume) (int, *admissionv1.AdmissionResponse, string) {
	m.t.Helper()
	raw, err := json.Marshal(pv)
	if err != nil {
		m.t.Fatal(err)
	}
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Operation: "CREATE", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, Object: runtime.RawExtension{Raw: raw},
		},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	resp, err := m.client(certificate).Post(m.url(path)+query, "application/json", bytes.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	review := &admissionv1.AdmissionReview{}
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(answer, review); err != nil {
			m.t.Fatal(err)
		}
	}
	return resp.StatusCode, review.Response, string(answer)
}

func gceVolume(name string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: name}
	return pv
}

// isOpen reports whether a port accepts connections.
func isOpen(port int) bool {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// ca signs certificates of a test.
type ca struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T) *ca {
	t.Helper()
	c := &ca{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	c.cert, c.key = c.make(template, nil)
	return c
}

func (c *ca) make(template *x509.Certificate, parent *ca) (*x509.Certificate, *ecdsa.PrivateKey) {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	signer, signed := key, template
	if parent != nil {
		signer, signed = parent.key, parent.cert
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signed, key.Public(), signer)
	if err != nil {
		c.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		c.t.Fatal(err)
	}
	return cert, key
}

func (c *ca) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw}))
}

// issue signs a certificate with a common name, for hosts.
func (c *ca) issue(name string, hosts ...string) *tls.Certificate {
	c.t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, DNSNames: hosts,
	}
	cert, key := c.make(template, c)
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

// files writes a certificate and its key.
func (c *ca) files(pair *tls.Certificate) (certFile, keyFile string) {
	c.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		c.t.Fatal(err)
	}
	return file(c.t, "tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))),
		file(c.t, "tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
}

// refused runs a command that must fail at once, with an error that contains all texts.
func refused(t *testing.T, r *Registry, initialize app.InitCloudFunc, args []string, texts ...string) {
	t.Helper()
	command := build(t, r, initialize, nil)
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetOut(io.Discard)
	err := command.Execute()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is missing in: %v", text, err)
		}
	}
}
