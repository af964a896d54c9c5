// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func TestOnlyAServerThatRegistersItselfWaitsForItsService(t *testing.T) {
	service := registration.Config{Endpoint: registration.Endpoint{Service: &registration.Service{Namespace: "hooks-system", Name: "hooks"}}}
	url := registration.Config{Endpoint: registration.Endpoint{URL: "https://127.0.0.1:9443"}}
	for _, tc := range []struct {
		name   string
		config registration.Config
		mode   registration.Mode
		waits  bool
	}{
		{"a Service, and it registers itself", service, registration.ModeAPI, true},
		{"a Service, and somebody else registers", service, registration.ModeNone, false},
		{"a URL", url, registration.ModeAPI, false},
		{"static manifests", url, registration.ModeManifest, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := newReach(&Registration{Mode: tc.mode, Options: registration.Options{Config: tc.config}, AwaitService: true}).err(); (err != nil) != tc.waits {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestTheServiceIsReachedOnceItsOwnCertificateIsShown(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	hellos := make(chan struct{}, 100)
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		hellos <- struct{}{}
		return nil, nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	authority, err := certificate.NewAuthority(certificate.AuthorityOptions{DNSNames: []string{"hooks.hooks-system.svc"}})
	if err != nil {
		t.Fatal(err)
	}

	reached := &reach{address: server.Listener.Addr().String(), reached: make(chan struct{})}
	no := func() bool { return false }
	reached.wait(t.Context(), func() []byte { return own }, no)
	if err := reached.err(); err != nil {
		t.Errorf("it was reached, and says %v", err)
	}
	if len(hellos) != 1 {
		t.Errorf("it took %d connections", len(hellos))
	}

	registered := &reach{address: "127.0.0.1:1", reached: make(chan struct{})} // nothing listens there
	registered.wait(t.Context(), authority.CABundle, func() bool { return true })
	if err := registered.err(); err != nil {
		t.Errorf("the webhooks were registered, and it says %v", err)
	}

	// A server that the bundle does not verify does not count.
	ctx, cancel := context.WithCancel(t.Context())
	waiting := &reach{address: server.Listener.Addr().String(), reached: make(chan struct{})}
	ended := make(chan struct{})
	go func() { waiting.wait(ctx, authority.CABundle, no); close(ended) }()
	for range 3 { // the one above, and two that fail
		<-hellos
	}
	if err := waiting.err(); err == nil {
		t.Error("somebody else's certificate counts")
	}
	cancel()
	<-ended
	if err := waiting.err(); err != nil {
		t.Errorf("nobody waits any more, and it says %v", err)
	}
}
