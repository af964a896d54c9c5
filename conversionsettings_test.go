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

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving/certificate"
)

func TestConversionServiceIsValidated(t *testing.T) {
	for name, tc := range map[string]struct {
		service, url, conversion, want string
	}{
		"none":              {service: "a/b"},
		"one of its own":    {service: "a/b", conversion: "a/c:8443"},
		"beside a URL":      {url: "https://a", conversion: "a/c", want: "registration.conversionService: Forbidden: requires service"},
		"no namespace":      {service: "a/b", conversion: "c", want: `registration.conversionService: Invalid value: "c": write NAMESPACE/NAME`},
		"no port":           {service: "a/b", conversion: "a/c:http", want: "the port must be a number from 1 to 65535"},
		"a name of no form": {service: "a/b", conversion: "a/C_c", want: "registration.conversionService: Invalid value"},
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
	settings.Registration.Service, settings.Registration.ConversionService = "shop/hatter", "shop/hatter-conversion:8443"
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
		conversion, want string
		port             int32
	}{
		"its own":             {"shop/hatter-conversion:8443", "hatter-conversion", 8443},
		"that of --service":   {"", "hatter", 443},
		"its own, usual port": {"shop/hatter-conversion", "hatter-conversion", 443},
	} {
		t.Run(name, func(t *testing.T) {
			settings := registration.Settings{Name: "hatter", Service: "shop/hatter", ConversionService: tc.conversion}
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
