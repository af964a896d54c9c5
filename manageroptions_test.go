// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"crypto/tls"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/sallyport-io/sallyport"
)

func TestSettingsTakeOverTheOptionsOfAManager(t *testing.T) {
	app, err := sallyport.New("fleet", sallyport.WithWebhooks(mutating("check.pods.example.com")))
	if err != nil {
		t.Fatal(err)
	}
	lease, renew, retry := 30*time.Second, 20*time.Second, 3*time.Second
	var log strings.Builder
	s := app.DefaultSettings()
	others := s.SetManagerOptions(ctrl.Options{
		Scheme: runtime.NewScheme(), Logger: logr.FromSlogHandler(slog.NewTextHandler(&log, nil)),
		LeaderElection: true, LeaderElectionID: "fleet.example.com", LeaderElectionNamespace: "fleet-system",
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:8181", SecureServing: true}, HealthProbeBindAddress: ":8081",
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: 9444, CertDir: "/certs", KeyName: "key.pem", TLSOpts: []func(*tls.Config){func(*tls.Config) {}}}),
	})
	if want := []string{"Scheme", "LeaderElectionID", "HealthProbeBindAddress", "Metrics.SecureServing", "WebhookServer.TLSOpts"}; !slices.Equal(others, want) {
		t.Errorf("others are %q, want %q", others, want)
	}
	e := s.LeaderElection
	if !e.LeaderElect || e.Namespace != "fleet-system" || e.LeaseDuration != lease || e.RenewDeadline != renew || e.RetryPeriod != retry {
		t.Errorf("leader election is %+v", e)
	}
	if s.Serving.BindAddress != "127.0.0.1" || s.Serving.SecurePort != 9444 || s.Serving.MetricsBindAddress != "127.0.0.1:8181" {
		t.Errorf("serving is %+v", s.Serving.Settings)
	}
	if c := s.Certificate; c.Source != "Files" || c.CertFile != "/certs/tls.crt" || c.PrivateKeyFile != "/certs/key.pem" {
		t.Errorf("certificate is %+v", c)
	}
	if s.Logger.Info("said"); !strings.Contains(log.String(), "said") {
		t.Error("the logger is another")
	}
}

// What is not set means what it means to controller-runtime.
func TestOptionsOfAManagerThatAreNotSet(t *testing.T) {
	app, err := sallyport.New("fleet", sallyport.WithWebhooks(mutating("check.pods.example.com")))
	if err != nil {
		t.Fatal(err)
	}
	s, defaults := app.DefaultSettings(), app.DefaultSettings()
	if others := s.SetManagerOptions(ctrl.Options{}); len(others) > 0 {
		t.Errorf("others are %q", others)
	}
	if s.LeaderElection.LeaderElect || s.Serving.MetricsBindAddress != ":8080" || s.LeaderElection.LeaseDuration != defaults.LeaderElection.LeaseDuration {
		t.Errorf("got %+v, metrics on %s", s.LeaderElection, s.Serving.MetricsBindAddress)
	}
	if s.Certificate.Source != defaults.Certificate.Source || s.Serving.SecurePort != defaults.Serving.SecurePort {
		t.Errorf("without a server the certificate is %+v", s.Certificate)
	}
	if others := s.SetManagerOptions(ctrl.Options{WebhookServer: struct{ webhook.Server }{}}); !slices.Equal(others, []string{"WebhookServer"}) {
		t.Errorf("others are %q", others)
	}
}
