// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
)

func TestCommandServesWithTheFlagsOfTheTestWebhook(t *testing.T) {
	certFile, keyFile, client := writeCertificate(t)
	port := freeport.For(t)
	cmd := command()
	cmd.SetArgs([]string{"--tls-cert-file", certFile, "--tls-private-key-file", keyFile, "--port", strconv.Itoa(port), "--sidecar-image", sidecarImage})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	defer func() {
		client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the command ended with %v", err)
		}
	}()

	url := "https://127.0.0.1:" + strconv.Itoa(port)
	ask := func(method, path, body string) (int, string, error) {
		req, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
		if err != nil {
			return 0, "", err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text), err
	}
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		code, text, err := ask(http.MethodGet, "/readyz", "")
		if err == nil && code == http.StatusOK {
			if !strings.HasPrefix(text, "ok") {
				t.Errorf("/readyz says %q", text)
			}
			break
		}
		select {
		case err := <-done:
			done <- err
			t.Fatalf("the command ended: %v", err)
		default:
			if time.Since(start) > time.Minute {
				t.Fatalf("not ready: %d %s %v", code, text, err)
			}
		}
	}
	code, text, err := ask(http.MethodPost, "/mutating-pods-sidecar", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",`+
		`"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"operation":"CREATE","object":{"kind":"Pod","spec":{"containers":[]}}}}`)
	if err != nil || code != http.StatusOK {
		t.Fatalf("got %d %s, %v", code, text, err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal([]byte(text), &review); err != nil || !strings.Contains(string(review.Response.Patch), sidecarImage) {
		t.Errorf("got %s, %v", text, err)
	}
}

// writeCertificate writes the one that package httptest has, and returns a client that
// trusts it.
func writeCertificate(t *testing.T) (certFile, keyFile string, client *http.Client) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	certificate := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]},
		keyFile:  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return certFile, keyFile, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
}
