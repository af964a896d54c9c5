// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/serving"
)

// selfSigned returns a certificate of this name for servers and clients, and its files.
func selfSigned(t *testing.T, name string) (pair tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(file, kind string, bytes []byte) string {
		path := filepath.Join(folder, file)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certFile, keyFile = write("tls.crt", "CERTIFICATE", der), write("tls.key", "PRIVATE KEY", private)
	if pair, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	return pair, certFile, keyFile
}

func TestOnlyProxiesWithACertificateMayNameUsers(t *testing.T) {
	gateway, gatewayFile, _ := selfSigned(t, "gateway")
	other, _, _ := selfSigned(t, "gateway")
	_, certFile, keyFile := selfSigned(t, "console")
	files, err := certificate.NewFiles(certificate.FilesOptions{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	proxy := &access.Proxy{UserHeader: "X-User", Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	if proxy.ClientCA, err = serving.NewClientCA(serving.ClientCAOptions{File: gatewayFile, CommonNames: []string{"gateway"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- unreachable().RunBehind(ctx, proxy, netip.MustParseAddrPort("127.0.0.1:0"), "/sallyport", files, func(url string) { ready <- url })
	}()
	url := <-ready
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(readFile(t, certFile))
	for name, tc := range map[string]struct {
		certificates []tls.Certificate
		path, user   string
		want         int
	}{
		"the proxy":                           {[]tls.Certificate{gateway}, "", "anna", http.StatusServiceUnavailable}, // as the cluster is
		"the proxy for nobody":                {[]tls.Certificate{gateway}, "", "", http.StatusForbidden},
		"somebody without a certificate":      {nil, "", "anna", http.StatusForbidden},
		"somebody with one of the same name":  {[]tls.Certificate{other}, "", "anna", http.StatusForbidden},
		"a probe":                             {nil, "../healthz", "", http.StatusOK},
		"a probe for what is no probe's":      {nil, "webhooks", "", http.StatusForbidden},
		"the style, which has nothing to see": {nil, "style.css", "", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: tc.certificates}, ForceAttemptHTTP2: true}
			defer transport.CloseIdleConnections()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(tc.path, "..") {
				request.URL.Path = strings.TrimPrefix(tc.path, "..")
			}
			if tc.user != "" {
				request.Header.Set("X-User", tc.user)
			}
			response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != tc.want || response.ProtoMajor != 2 {
				t.Errorf("%s %d, want %d", response.Proto, response.StatusCode, tc.want)
			}
		})
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestALocalConsoleIsOnALoopbackAddress(t *testing.T) {
	err := unreachable().RunLocal(t.Context(), netip.MustParseAddrPort("0.0.0.0:0"), func(string) { t.Error("it serves") })
	if err == nil || !strings.Contains(err.Error(), "not a loopback address") {
		t.Error(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	contents, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

func TestAConsoleBelowAPrefix(t *testing.T) {
	handler := access.WithHealth(access.WithoutPrefix("/apps/sallyport", unreachable().handler(access.Local)))
	for target, want := range map[string]int{
		"/apps/sallyport": http.StatusPermanentRedirect, "/apps/sallyport/": http.StatusServiceUnavailable, "/apps/sallyport/style.css": http.StatusOK,
		"/style.css": http.StatusOK, "/": http.StatusServiceUnavailable, "/apps/other": http.StatusNotFound, "/healthz": http.StatusOK,
		"/apps/sallyport/../../style.css": http.StatusNotFound, "/apps/sallyportstyle.css": http.StatusNotFound,
	} {
		w := recorded(handler, localRequest(http.MethodGet, target, nil))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", target, w.Code, want)
		}
		if location := w.Header().Get("Location"); location != "" && location != "/apps/sallyport/" {
			t.Errorf("%s: to %s", target, location)
		}
	}
}
