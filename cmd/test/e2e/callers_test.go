// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/serving"
)

// What the API server shows to a webhook, by the host that it calls.
const (
	shownToHost  = "Bearer token-of-one-host"
	shownToOther = "Bearer token-of-all-others"
	shownInTLS   = "kube-apiserver" // common name of a client certificate
)

// configureCallers writes the AdmissionConfiguration with which the API server starts:
// of two hosts it knows the ports beforehand, and for all others it has a token.
func (w *world) configureCallers(t *testing.T) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	w.byToken, w.byCertificate = reserve(t), reserve(t)
	token := func(header string) string { return strings.TrimPrefix(header, "Bearer ") }
	certificate, key := clientCertificate(t)
	config.AuthInfos[w.byToken.Addr().String()] = &clientcmdapi.AuthInfo{Token: token(shownToHost)}
	config.AuthInfos[w.byCertificate.Addr().String()] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.AuthInfos["*"] = &clientcmdapi.AuthInfo{Token: token(shownToOther)}
	kubeconfig := filepath.Join(w.folder, "webhooks.kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	for _, plugin := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		text += "- name: " + plugin + "\n  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: " + kubeconfig + "}\n"
	}
	writeFile(t, filepath.Join(w.folder, "admission.yaml"), text)
}

// reserve listens, so that nobody else gets the port.
func reserve(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // it may have served and ended
	return listener
}

// clientCertificate is signed by itself: who looks at it here knows its name and no more.
func clientCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: shownInTLS}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// shown is what a caller shows: a header, or the name in its certificate.
func shown(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return r.TLS.PeerCertificates[0].Subject.CommonName
	}
	return r.Header.Get("Authorization")
}

func testCallers(t *testing.T, w *world) {
	for _, tc := range []struct {
		name     string
		listener net.Listener // nil for a host that the API server has not heard of
		shows    string
		accepts  string
		refused  bool
	}{
		{"token", w.byToken, shownToHost, shownToHost, false},
		{"certificate", w.byCertificate, shownInTLS, shownInTLS, false},
		{"others", nil, shownToOther, shownToOther, false},
		{"refused", nil, shownToOther, shownToHost, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := "callers-" + tc.name
			seen := &journal[string]{}
			options := serving.DefaultOptions()
			options.Authenticate = func(r *http.Request) error {
				seen.note(r.URL.Path, shown(r))
				if r.URL.Path == "/webhook" && shown(r) != tc.accepts {
					return serving.ErrUnauthenticated
				}
				return nil
			}
			called := &journal[struct{}]{}
			w.namespace(t, name)
			w.serveAt(t, tc.listener, name, []admission.Webhook{{
				Name: "webhook.sallyport.io", Path: "/webhook", Type: admission.TypeValidating,
				Rules:             admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"), admissionregistrationv1.Create),
				NamespaceSelector: within(name), TimeoutSeconds: 30, AllowWedge: "only a namespace of the test",
				Handler: admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
					called.note("", struct{}{})
					return admission.Allowed(), nil
				}),
			}}, options, nil)
			_, err := w.clients.CoreV1().ConfigMaps(name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
			if got := seen.take()["/webhook"]; len(got) != 1 || got[0] != tc.shows {
				t.Errorf("the API server showed %q, want %q", got, tc.shows)
			}
			if (err != nil) != tc.refused || called.peek("") == 1 == tc.refused {
				t.Errorf("the request ended with %v, and the handler was called %d times", err, called.peek(""))
			}
			if tc.refused && (status(t, err).Code != http.StatusInternalServerError || !strings.Contains(err.Error(), "webhook.sallyport.io")) {
				t.Errorf("the request ended with %v", err)
			}
		})
	}
}
