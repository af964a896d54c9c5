// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1 "github.com/sallyport-io/sallyport/examples/kubebuilder/api/v1"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// asManager makes the test's program be the manager.
const asManager = "EXAMPLE_RUN_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(asManager) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestTheManagerDefaultsAndValidatesOnARealAPIServer(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	decode(t, read(t, "../config/crd/fleet.example.com_captains.yaml"), &crd)
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(&crd))
	captains, warnings := connect(t, config)
	manager := startManager(t, config)
	register(t, captains, manager)

	// The API server calls webhooks some time after they were registered.
	for {
		probe := captain("probe", 9)
		if err := captains.Create(t.Context(), probe, client.DryRunAll); apierrors.IsInvalid(err) {
			break
		} else if err != nil {
			t.Fatalf("waiting for the webhooks: %v\n%s", err, manager.log())
		}
		time.Sleep(20 * time.Millisecond)
	}
	for {
		probe := captain("probe", 0)
		if err := captains.Create(t.Context(), probe, client.DryRunAll); err != nil {
			t.Fatalf("waiting for the webhooks: %v\n%s", err, manager.log())
		}
		if probe.Spec.Rank != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}

	t.Run("a default is set, and a warning shown", func(t *testing.T) {
		ahab := captain("ahab", 0)
		if err := captains.Create(t.Context(), ahab); err != nil {
			t.Fatal(err)
		}
		if ahab.Spec.Rank == nil || *ahab.Spec.Rank != 1 {
			t.Errorf("rank %v", ahab.Spec.Rank)
		}
		if !warnings.has("a ship without a crew stays in port") {
			t.Error("no warning")
		}
	})
	t.Run("an invalid object is refused with its field", func(t *testing.T) {
		err := captains.Create(t.Context(), captain("sparrow", 9))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.rank") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a change is compared with what was there", func(t *testing.T) {
		var ahab fleetv1.Captain
		if err := captains.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "ahab"}, &ahab); err != nil {
			t.Fatal(err)
		}
		ahab.Spec.Ship = "another"
		if err := captains.Update(t.Context(), &ahab); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "stays with the ship") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a deletion is refused and admitted", func(t *testing.T) {
		nemo := captain("nemo", 5)
		nemo.Spec.Crew = []string{"ned"}
		if err := captains.Create(t.Context(), nemo); err != nil {
			t.Fatal(err)
		}
		if err := captains.Delete(t.Context(), nemo); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
		nemo.Spec.Crew = nil
		if err := captains.Update(t.Context(), nemo); err != nil {
			t.Fatal(err)
		}
		if err := captains.Delete(t.Context(), nemo); err != nil {
			t.Error(err)
		}
	})
	t.Run("the manager shows the metrics of the server", func(t *testing.T) {
		code, text := manager.get(t, manager.metrics+"/metrics")
		if code != 200 || !strings.Contains(text, `sallyport_serving_request_duration_seconds_count{code="200",path="/mutate-fleet-example-com-v1-captain"}`) {
			t.Errorf("answers %d", code)
		}
	})
	t.Run("no call is lost after SIGTERM", func(t *testing.T) {
		if err := manager.process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for { // first the endpoints are told
			if code, _ := manager.get(t, manager.probes+"/readyz"); code != 200 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		for i := range 20 {
			if err := captains.Create(t.Context(), captain(fmt.Sprintf("late-%d", i), 0)); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if err := manager.wait(); err != nil {
			t.Errorf("the manager ended with %v\n%s", err, manager.log())
		}
		if !strings.Contains(manager.log(), "drained") {
			t.Errorf("it did not drain:\n%s", manager.log())
		}
	})
}

func TestTheManagerDiffersFromKubebuildersByOneLine(t *testing.T) {
	text := string(read(t, "main.go"))
	const call, imported = "webhookServer := controllerruntime.NewServer(webhookServerOptions)", "\t\"github.com/sallyport-io/sallyport/controllerruntime\"\n"
	if strings.Count(text, "controllerruntime.") != 1 || strings.Count(text, call) != 1 || strings.Count(text, imported) != 1 {
		t.Fatalf("main.go uses the package otherwise than in the line %q", call)
	}
	text = strings.Replace(strings.Replace(text, imported, "", 1), call, "webhookServer := webhook.NewServer(webhookServerOptions)", 1)

	// With that line as kubebuilder writes it, the rest compiles as it is.
	folder := t.TempDir()
	stock, overlay := filepath.Join(folder, "main.go"), filepath.Join(folder, "overlay.json")
	original, err := filepath.Abs("main.go")
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: stock}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{stock: []byte(text), overlay: replace} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "go", "list", "-export", "-overlay", overlay, "-f", "{{.Export}}", ".")
	if out, err := command.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) == "" {
		t.Errorf("%v\n%s", err, out)
	}
}

func captain(name string, rank int64) *fleetv1.Captain {
	c := &fleetv1.Captain{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: fleetv1.CaptainSpec{Ship: "pequod"}}
	if rank != 0 {
		c.Spec.Rank = &rank
	}
	return c
}

// heard are warnings.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, text)
}

func (h *heard) has(part string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(strings.Join(h.all, "\n"), part)
}

func connect(t *testing.T, config *rest.Config) (client.Client, *heard) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fleetv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	warnings := &heard{}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = warnings
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.CloseIdleConnections)
	c, err := client.New(config, client.Options{Scheme: scheme, HTTPClient: http})
	if err != nil {
		t.Fatal(err)
	}
	return c, warnings
}

// manager is a manager in a process of its own.
type manager struct {
	process                   *os.Process
	webhooks, metrics, probes string // URLs
	ca                        []byte
	output                    *bytes.Buffer // to be read after wait
	wait                      func() error
	client                    *http.Client
}

func startManager(t *testing.T, config *rest.Config) *manager {
	t.Helper()
	m := &manager{output: &bytes.Buffer{}, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	folder := t.TempDir()
	m.ca = writeCertificate(t, folder)
	port := strconv.Itoa(freeport.For(t))
	metrics, probes := fmt.Sprint("127.0.0.1:", freeport.For(t)), fmt.Sprint("127.0.0.1:", freeport.For(t))
	m.webhooks, m.metrics, m.probes = "https://127.0.0.1:"+port, "http://"+metrics, "http://"+probes
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "--kubeconfig="+sallyporttest.Kubeconfig(t, config), "--webhook-port="+port,
		"--webhook-cert-path="+folder, "--metrics-bind-address="+metrics, "--health-probe-bind-address="+probes)
	command.Env = append(os.Environ(), asManager+"=1")
	command.Stdout, command.Stderr = m.output, m.output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	m.process = command.Process
	ended := make(chan struct{})
	var end error
	go func() { end = command.Wait(); close(ended) }()
	m.wait = func() error { <-ended; return end }
	t.Cleanup(func() {
		_ = m.process.Kill() // it has ended, if all went well
		_ = m.wait()
	})
	for {
		if code, _ := m.get(t, m.probes+"/readyz"); code == http.StatusOK {
			return m
		}
		select {
		case <-ended:
			t.Fatalf("the manager ended:\n%s", m.log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// get answers 0 if nobody does.
func (m *manager) get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := m.client.Do(request)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(all)
}

// log ends the manager and returns what it has logged.
func (m *manager) log() string {
	_ = m.process.Kill()
	_ = m.wait()
	return m.output.String()
}

// register applies the configurations that controller-gen made, which lead to a
// Service, with the manager's URL in its place.
func register(t *testing.T, c client.Client, m *manager) {
	t.Helper()
	documents := bytes.Split(read(t, "../config/webhook/manifests.yaml"), []byte("---\n"))
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	decode(t, documents[1], &mutating)
	decode(t, documents[2], &validating)
	for _, config := range []*admissionregistrationv1.WebhookClientConfig{&mutating.Webhooks[0].ClientConfig, &validating.Webhooks[0].ClientConfig} {
		url := m.webhooks + *config.Service.Path
		config.Service, config.URL, config.CABundle = nil, &url, m.ca
	}
	for _, object := range []client.Object{&mutating, &validating} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// writeCertificate writes the files that cert-manager mounts, and returns what the API
// server trusts.
func writeCertificate(t *testing.T, folder string) (ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, content := range map[string][]byte{
		"tls.crt": ca, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ca
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func decode(t *testing.T, document []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		t.Fatal(err)
	}
}
