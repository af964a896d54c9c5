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

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving/certificate"
)

func TestConversionServiceIsValidated(t *testing.T) {
	for name, tc := range map[string]struct {
		settings RegistrationSettings
		want     string
	}{
		"none":              {RegistrationSettings{Service: "a/b"}, ""},
		"one of its own":    {RegistrationSettings{Service: "a/b", ConversionService: "a/c:8443"}, ""},
		"beside a URL":      {RegistrationSettings{URL: "https://a", ConversionService: "a/c"}, "Registration.ConversionService: requires Registration.Service"},
		"no namespace":      {RegistrationSettings{Service: "a/b", ConversionService: "c"}, `Registration.ConversionService: "c": write NAMESPACE/NAME`},
		"no port":           {RegistrationSettings{Service: "a/b", ConversionService: "a/c:http"}, "the port must be a number from 1 to 65535"},
		"a name of no form": {RegistrationSettings{Service: "a/b", ConversionService: "a/C_c"}, "Registration.ConversionService: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.settings.ValidateConversion()
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	app := hatter(t)
	settings := app.DefaultSettings()
	settings.Registration.Service, settings.Registration.ConversionService = "a/b", "c"
	if err := app.Validate(settings); err == nil || !strings.Contains(err.Error(), "Registration.ConversionService") {
		t.Errorf("an application takes it: %v", err)
	}
}

// Both Services lead to the same port, where the API server requests the name of the
// Service it used.
func TestTheCertificateIsForBothServices(t *testing.T) {
	settings := hatter(t).DefaultSettings()
	settings.Registration.Service, settings.Registration.ConversionService = "shop/hatter", "shop/hatter-conversion:8443"
	config := settings.Registration.Config()
	base := certificate.AuthorityOptions{
		Logger: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Leading: func() bool { return true },
		Published: func() ([][]byte, error) { return nil, nil },
	}
	clients := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	source, err := settings.Certificate.Open(clients.CoreV1(), config.Endpoint, config.ConversionEndpoint, base)
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
			settings := RegistrationSettings{Name: "hatter", Service: "shop/hatter", ConversionService: tc.conversion}
			got, err := registration.ConversionManifest(settings.Config(), hosting.ConversionOf("hats.hats.example.com"), nil)
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
