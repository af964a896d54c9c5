// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/test/lab"
)

// A server is one sallyport serve process.
type server struct {
	*lab.Server
}

// serve starts sallyport serve for namespaces with the label e2e of that value,
// with a webhook configuration of that name, and waits until it is ready and the
// configuration is written. Arguments come last, and win.
func (e *env) serve(t *testing.T, name string, args ...string) *server {
	t.Helper()
	s := e.start(t, name, args...)
	s.awaitReady(t)
	eventually(t, "the webhook configuration "+name, func(ctx context.Context) (bool, error) {
		return e.registered(ctx, name, s.URL)
	})
	return s
}

// start starts the process and waits for nothing.
func (e *env) start(t *testing.T, name string, args ...string) *server {
	t.Helper()
	// Of a server that shares its API server with others, statuses are none of its
	// business: it would write those of all of them.
	controllers := ""
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--controllers") }) {
		controllers = "*"
	}
	started, err := lab.Serve(t.TempDir(), lab.Serving{Name: name, Binary: e.binary, Kubeconfig: e.kubeconfig, ByURL: true}, append([]string{
		"--configuration-name", name, "--namespace-selector", "e2e=" + name,
		lab.Set("serving.drainMin", "0s"), lab.Set("serving.drainTimeout", "500ms"),
		"--controllers=" + controllers,
		lab.Set("webhooks.poddefault.guard", "Fail"), // what a policy does is tested where it is meant
	}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	started.Probes = started.Metrics // some bind the port of their webhooks to another address
	s := &server{started}
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
	if err := s.AwaitReady(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
}

// stop ends the process as Kubernetes does, and fails the test if that is not
// clean.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if s.HasEnded() { // by the test itself
		return
	}
	if err := s.Stop(time.Minute); err != nil {
		t.Errorf("%v\n%s", err, s.Log())
	}
	if t.Failed() {
		t.Logf("log of the server:\n%s", s.Log())
	}
}

// post sends a body to the webhook, as anybody could.
func (s *server) post(t *testing.T, method, path, contentType string, body []byte) (code int, answer string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		// The caller of these tests is not the one to be convinced.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // see above
	}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, s.Log())
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
	value, err := s.Metric(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
