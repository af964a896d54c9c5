// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/test/lab"
)

// A server is one sallyport serve process.
type server struct {
	url     string // of the webhooks
	metrics string
	process *exec.Cmd
	log     *lab.Log
	ended   chan struct{}
	err     error // of the process, once ended
}

// serve starts sallyport serve for namespaces with the label e2e of that value,
// with a webhook configuration of that name, and waits until it is ready and the
// configuration is written. Arguments come last, and win.
func (e *env) serve(t *testing.T, name string, args ...string) *server {
	t.Helper()
	s := e.start(t, name, args...)
	s.awaitReady(t)
	eventually(t, "the webhook configuration "+name, func(ctx context.Context) (bool, error) {
		return e.registered(ctx, name, s.url)
	})
	return s
}

// start starts the process and waits for nothing.
func (e *env) start(t *testing.T, name string, args ...string) *server {
	t.Helper()
	port, metricsPort := lab.FreePort(t), lab.FreePort(t)
	// Of a server that shares its API server with others, statuses are none of its
	// business: it would write those of all of them.
	controllers := ""
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--controllers") }) {
		controllers = "*"
	}
	s := &server{
		url:     fmt.Sprintf("https://127.0.0.1:%d", port),
		metrics: fmt.Sprintf("http://127.0.0.1:%d", metricsPort),
		log:     &lab.Log{},
		ended:   make(chan struct{}),
	}
	all, err := lab.Arguments(t.TempDir(), append([]string{
		"serve", "--kubeconfig", e.kubeconfig, "--url", s.url,
		"--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port),
		"--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", metricsPort),
		"--configuration-name", name, "--namespace-selector", "e2e=" + name,
		lab.Set("serving.drainMin", "0s"), lab.Set("serving.drainTimeout", "500ms"),
		"--controllers=" + controllers,
		lab.Set("webhooks.poddefault.guard", "Fail"), // what a policy does is tested where it is meant
	}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	s.process = exec.Command(e.binary, all...)
	s.process.Stderr = s.log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s.err = s.process.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		s.stop(t)
		// Its rule for cluster-scoped objects is for those of all the tests.
		err := e.client.Delete(context.Background(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, "the server to be ready", func(ctx context.Context) (bool, error) {
		select {
		case <-s.ended:
			t.Fatalf("the server ended: %v\n%s", s.err, s.log)
		default:
		}
		return s.ready(ctx)
	})
}

func (s *server) ready(ctx context.Context) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.metrics+"/readyz", nil)
	if err != nil {
		return false, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	return resp.StatusCode == http.StatusOK, resp.Body.Close()
}

// stop ends the process as Kubernetes does, and fails the test if that is not
// clean.
func (s *server) stop(t *testing.T) {
	t.Helper()
	select {
	case <-s.ended: // by the test itself
		return
	default:
	}
	_ = s.process.Process.Signal(syscall.SIGTERM)
	<-s.ended
	if s.err != nil {
		t.Errorf("the server did not end well: %v\n%s", s.err, s.log)
	}
	if t.Failed() {
		t.Logf("log of the server:\n%s", s.log)
	}
}

// kill ends the process without a word.
func (s *server) kill(t *testing.T) {
	t.Helper()
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
}

// post sends a body to the webhook, as anybody could.
func (s *server) post(t *testing.T, method, path, contentType string, body []byte) (code int, answer string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		// The caller of these tests is not the one to be convinced.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, s.log)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode, string(text)
}

// metric returns the value of a line of /metrics.
func (s *server) metric(t *testing.T, name string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.metrics+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("there is no metric %s", name)
	return ""
}
