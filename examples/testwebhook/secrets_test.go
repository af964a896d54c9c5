// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// secretFor holds a certificate for hosts.
func secretFor(t *testing.T, namespace string, hosts ...string) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: hosts, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "certificate"}, Data: map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
}

func TestEachHostGetsTheCertificateOfItsSecret(t *testing.T) {
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"}) // nobody is asked
	if err != nil {
		t.Fatal(err)
	}
	s := newSecretCertificates(clients, "certificate")
	if s.Ready() == nil {
		t.Error("it is ready before the Secrets are known")
	}
	serves := func(host string, want *corev1.Secret) {
		t.Helper()
		certificate, err := s.GetCertificate(&tls.ClientHelloInfo{ServerName: host})
		if want == nil {
			if err == nil {
				t.Errorf("%s is served", host)
			}
			return
		}
		pair, errPair := tls.X509KeyPair(want.Data[corev1.TLSCertKey], want.Data[corev1.TLSPrivateKeyKey])
		if err != nil || errPair != nil || !certificate.Leaf.Equal(pair.Leaf) {
			t.Errorf("%s gets another certificate (%v, %v)", host, err, errPair)
		}
	}
	a, b := secretFor(t, "a", "webhook.a.svc", "Other.a.svc"), secretFor(t, "b", "webhook.b.svc")
	s.put(a)
	s.put(b)
	serves("webhook.a.svc", a)
	serves("other.A.svc", a)
	serves("webhook.b.svc", b)
	serves("webhook.c.svc", nil)
	serves("", nil)

	renewed := secretFor(t, "a", "webhook.a.svc")
	s.put(renewed)
	serves("webhook.a.svc", renewed)
	serves("other.a.svc", nil)

	broken := renewed.DeepCopy()
	broken.Data[corev1.TLSPrivateKeyKey] = b.Data[corev1.TLSPrivateKeyKey]
	s.put(broken)
	serves("webhook.a.svc", nil)
	serves("webhook.b.svc", b)

	s.remove("b/certificate")
	serves("webhook.b.svc", nil)
}
