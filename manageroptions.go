// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/sallyport-io/sallyport/serving/certificate"
)

// SetManagerOptions sets what a project has in ctrl.Options, for example from the
// configuration file of its component: logger, leader election, where metrics are served, and
// address, port and certificate files of webhook.NewServer. It returns the names of the other
// fields that are set. Caches, clients and the like belong to [WithManagerOptions], the scheme
// to [WithScheme]. For the others the application has its own: its lease, probes beside
// webhooks and metrics, and the settings of its listener.
//
// What is not set means what it means to controller-runtime: no leader election, and metrics
// on port 8080. Without a webhook server, Serving and Certificate stay as they are.
func (s *Settings) SetManagerOptions(options manager.Options) (others []string) {
	if options.Logger.GetSink() != nil {
		s.Logger = slog.New(logr.ToSlogHandler(options.Logger))
	}
	s.LeaderElection.LeaderElect = options.LeaderElection
	s.LeaderElection.Namespace = cmp.Or(options.LeaderElectionNamespace, s.LeaderElection.Namespace)
	for _, set := range []struct{ to, from *time.Duration }{
		{&s.LeaderElection.LeaseDuration, options.LeaseDuration},
		{&s.LeaderElection.RenewDeadline, options.RenewDeadline},
		{&s.LeaderElection.RetryPeriod, options.RetryPeriod},
	} {
		if set.from != nil {
			*set.to = *set.from
		}
	}
	s.Serving.MetricsBindAddress = cmp.Or(options.Metrics.BindAddress, metricsserver.DefaultBindAddress)
	others = slices.Concat(
		fieldsSet("", options, "Logger", "LeaderElection", "LeaderElectionNamespace", "LeaseDuration", "RenewDeadline", "RetryPeriod", "Metrics", "WebhookServer"),
		fieldsSet("Metrics.", options.Metrics, "BindAddress"),
	)
	switch server := options.WebhookServer.(type) {
	case nil:
	case *webhook.DefaultServer:
		others = append(others, s.setWebhookOptions(server.Options)...)
	default: // nobody but the server knows its options
		others = append(others, "WebhookServer")
	}
	return others
}

func (s *Settings) setWebhookOptions(options webhook.Options) (others []string) {
	s.Serving.BindAddress, s.Serving.SecurePort = options.Host, int32(cmp.Or(options.Port, webhook.DefaultPort))
	folder := cmp.Or(options.CertDir, filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs"))
	s.Certificate.Source = certificate.SourceFiles
	s.Certificate.CertFile = filepath.Join(folder, cmp.Or(options.CertName, "tls.crt"))
	s.Certificate.PrivateKeyFile = filepath.Join(folder, cmp.Or(options.KeyName, "tls.key"))
	// The constructor sets the mux.
	return fieldsSet("WebhookServer.", options, "Host", "Port", "CertDir", "CertName", "KeyName", "WebhookMux")
}

// fieldsSet returns the names of the exported fields of a struct that are not zero, except for the given ones.
func fieldsSet(prefix string, of any, except ...string) (names []string) {
	value := reflect.ValueOf(of)
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if field.IsExported() && !value.Field(i).IsZero() && !slices.Contains(except, field.Name) {
			names = append(names, prefix+field.Name)
		}
	}
	return names
}
