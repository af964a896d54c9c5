// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func TestConversionServiceIsValidated(t *testing.T) {
	own := &registration.Service{Namespace: "a", Name: "b"}
	for name, tc := range map[string]struct {
		service, conversion *registration.Service
		url, want           string
	}{
		"none":              {service: own},
		"one of its own":    {service: own, conversion: &registration.Service{Namespace: "a", Name: "c", Port: 8443}},
		"beside a URL":      {url: "https://a", conversion: &registration.Service{Namespace: "a", Name: "c"}, want: "registration.conversionService: Forbidden: requires service"},
		"no namespace":      {service: own, conversion: &registration.Service{Name: "c"}, want: `registration.conversionService.namespace: Required value`},
		"a port too high":   {service: own, conversion: &registration.Service{Namespace: "a", Name: "c", Port: 65536}, want: "registration.conversionService.port: Invalid value: 65536"},
		"a name of no form": {service: own, conversion: &registration.Service{Namespace: "a", Name: "C_c"}, want: "registration.conversionService.name: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			app := hatter(t)
			settings := app.DefaultSettings()
			settings.Client = &rest.Config{}
			settings.Registration.Service, settings.Registration.URL, settings.Registration.ConversionService = tc.service, tc.url, tc.conversion
			err := app.Validate(settings)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// Both Services lead to the same port, where the API server requests the name of the
// Service it used.
func TestTheCertificateIsForBothServices(t *testing.T) {
	settings := hatter(t).DefaultSettings()
	settings.Registration.Service, settings.Registration.ConversionService = &registration.Service{Namespace: "shop", Name: "hatter"}, &registration.Service{Namespace: "shop", Name: "hatter-conversion", Port: 8443}
	config := hosting.Config(&settings.Registration)
	base := certificate.AuthorityOptions{
		Logger: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Leading: func() bool { return true },
		Published: func() ([][]byte, error) { return nil, nil },
	}
	clients := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	source, err := hosting.OpenCertificate(&settings.Certificate, clients.CoreV1(), config.Endpoint, config.ConversionEndpoint, base)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for changed := source.Changed(); source.Ready() != nil; changed = source.Changed() {
		if source.Ready() != nil {
			<-changed
		}
	}
	leaf, err := source.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hatter.shop.svc", "hatter-conversion.shop.svc"} {
		if err := leaf.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

func TestTheStanzaNamesTheConversionService(t *testing.T) {
	for name, tc := range map[string]struct {
		conversion *registration.Service
		want       string
		port       int32
	}{
		"its own":             {&registration.Service{Namespace: "shop", Name: "hatter-conversion", Port: 8443}, "hatter-conversion", 8443},
		"that of --service":   {nil, "hatter", 443},
		"its own, usual port": {&registration.Service{Namespace: "shop", Name: "hatter-conversion"}, "hatter-conversion", 443},
	} {
		t.Run(name, func(t *testing.T) {
			settings := registration.Settings{Name: "hatter", Service: &registration.Service{Namespace: "shop", Name: "hatter"}, ConversionService: tc.conversion}
			got, err := registration.ConversionManifest(hosting.Config(&settings), hosting.ConversionOf("hats.hats.example.com"), nil)
			if err != nil {
				t.Fatal(err)
			}
			service := got.Webhook.ClientConfig.Service
			if service == nil || service.Namespace != "shop" || service.Name != tc.want || *service.Path != "/convert" ||
				service.Port == nil && tc.port != 443 || service.Port != nil && *service.Port != tc.port {
				t.Errorf("got %+v", service)
			}
		})
	}
}
