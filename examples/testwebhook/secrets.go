// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// secretCertificates are the certificates that the Secrets of one name hold, in any
// namespace. Each is for the hosts that it names itself, so that one server can stand
// behind the Services of many namespaces: each case of a suite makes a Secret, and a
// Service whose host the certificate in it is for.
type secretCertificates struct {
	informer cache.SharedIndexInformer

	mu     sync.Mutex
	byHost map[string]held
}

// held is a certificate and the Secret, namespace/name, that holds it.
type held struct {
	certificate *tls.Certificate
	secret      string
}

func newSecretCertificates(clients kubernetes.Interface, name string) *secretCertificates {
	s := &secretCertificates{byHost: map[string]held{}}
	secrets := cache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "secrets", corev1.NamespaceAll,
		fields.OneTermEqualSelector("metadata.name", name))
	s.informer = cache.NewSharedIndexInformer(secrets, &corev1.Secret{}, 0, nil)
	return s
}

// Run follows the Secrets until ctx ends. It calls listed once it knows those that there
// were at first.
func (s *secretCertificates) Run(ctx context.Context, listed func()) error {
	_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.put(object.(*corev1.Secret)) },
		UpdateFunc: func(_, object any) { s.put(object.(*corev1.Secret)) },
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				s.remove(key)
			}
		},
	})
	if err != nil {
		return err
	}
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced) {
			listed()
		}
	}()
	s.informer.RunWithContext(ctx)
	return nil
}

// Ready is nil once the Secrets that there were at first are known.
func (s *secretCertificates) Ready() error {
	if !s.informer.HasSynced() {
		return errors.New("the Secrets were not listed yet")
	}
	return nil
}

// GetCertificate returns the certificate for the host that the caller asks for.
func (s *secretCertificates) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.byHost[strings.ToLower(hello.ServerName)]; ok {
		return found.certificate, nil
	}
	return nil, fmt.Errorf("no Secret has a certificate for host %q", hello.ServerName)
}

// put takes the place of what the Secret held before.
func (s *secretCertificates) put(secret *corev1.Secret) {
	key := secret.Namespace + "/" + secret.Name
	s.remove(key)
	certificate, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		slog.Error("the Secret holds no certificate with its key", "secret", key, "error", err)
		return
	}
	slog.Info("certificate", "secret", key, "hosts", certificate.Leaf.DNSNames)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, host := range certificate.Leaf.DNSNames {
		s.byHost[strings.ToLower(host)] = held{&certificate, key}
	}
}

func (s *secretCertificates) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for host, have := range s.byHost {
		if have.secret == key {
			delete(s.byHost, host)
		}
	}
}
