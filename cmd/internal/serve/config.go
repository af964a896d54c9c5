// SPDX-License-Identifier: Apache-2.0

// Package serve implements `sallyport serve`: its configuration, the built-in webhooks, and
// how they follow the configuration file while the server runs. The configuration is one value,
// from defaults, the file and flags in that order.
package serve

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	frontdoor "github.com/sallyport-io/sallyport"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/hosting/tracing"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// Name is the name of the application. Leases and the authority's Secret derive their names
// from it.
const Name = "sallyport"

// Config is a configuration with the decoded settings of the built-in webhooks.
type Config struct {
	configv1alpha1.SallyportConfiguration
	Settings Settings

	data []byte          // contents of the file; nil without one
	set  map[string]bool // fields set by flags
}

// Default returns the default configuration.
func Default() *Config {
	limits := serving.DefaultOptions()
	certificates := frontdoor.DefaultCertificateSettings(Name)
	duration := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	return &Config{
		SallyportConfiguration: configv1alpha1.SallyportConfiguration{
			TypeMeta: metav1.TypeMeta{APIVersion: configv1alpha1.APIVersion, Kind: configv1alpha1.Kind},
			Registration: configv1alpha1.Registration{
				Mode:               string(registration.ModeAPI),
				Name:               Name,
				ExcludedNamespaces: []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease, metav1.NamespacePublic},
				OwnPods:            "app.kubernetes.io/name=" + Name,
				FailurePolicy:      string(admissionregistrationv1.Fail),
				ForeignTerms:       foreignTermsKeep,
				TimeoutSeconds:     5,
				ReviewVersions:     reviewversion.All(),
			},
			Certificate: configv1alpha1.Certificate{
				Source:        certificates.Source,
				Lifetime:      duration(certificates.CertificateLifetime),
				CALifetime:    duration(certificates.AuthorityLifetime),
				CAPropagation: duration(certificates.Propagation),
			},
			// The defaults of Kubernetes' components.
			LeaderElection: configv1alpha1.LeaderElection{
				LeaderElect:   true,
				LeaseDuration: duration(15 * time.Second), RenewDeadline: duration(10 * time.Second), RetryPeriod: duration(2 * time.Second),
			},
			Authentication: configv1alpha1.Authentication{
				Mode: frontdoor.AuthenticationNone, ClientCommonNames: []string{}, Metrics: frontdoor.AuthenticationNone,
			},
			Serving: configv1alpha1.Serving{
				SecurePort: limits.Port, MetricsBindAddress: limits.MetricsBindAddress,
				ReadHeaderTimeout: duration(limits.ReadHeaderTimeout), ReadTimeout: duration(limits.ReadTimeout),
				WriteTimeout: duration(limits.WriteTimeout), IdleTimeout: duration(limits.IdleTimeout),
				MaxHeaderBytes: limits.MaxHeaderBytes, MaxBodyBytes: limits.MaxBodyBytes, MinBodyRate: limits.MinBodyRate,
				DrainMin: duration(limits.DrainMin), DrainTimeout: duration(limits.DrainMax),
			},
			Log:         configv1alpha1.Log{Level: "info", Format: "text"},
			Recording:   configv1alpha1.Recording{MaxSizeMegabytes: 10, MaxFiles: 5, MaxAgeDays: 7, RecentMegabytes: 8},
			Webhooks:    []configv1alpha1.Webhook{{Name: enabledByDefault}},
			Controllers: []string{"*"},
		},
		Settings: DefaultSettings(),
	}
}

// Load returns the defaults, overridden by the file, overridden by the flags of [AddFlags] that
// were set. Path may be empty, and given nil. The error lists every problem, those in the file
// with their line. A missing required field is not an error if it is listed in optional.
func Load(path string, given *pflag.FlagSet, optional ...string) (*Config, error) {
	c := Default()
	p := &problems{}
	if path != "" {
		if err := p.read(path, c); err != nil {
			return nil, err
		}
	}
	if given != nil {
		p.add(c.override(given))
	}
	for i := range c.Webhooks {
		p.readSettings(c, i)
	}
	for _, err := range c.validate() {
		if err.Type != field.ErrorTypeRequired || !slices.Contains(optional, err.Field) {
			p.field(c, err)
		}
	}
	return c, p.err()
}

// Complete returns the configuration with an entry for each built-in webhook and all their
// settings.
func (c *Config) Complete() (*configv1alpha1.SallyportConfiguration, error) {
	out := c.SallyportConfiguration
	out.Webhooks = nil
	for _, b := range Builtins() {
		entry := configv1alpha1.Webhook{Name: b.Name}
		if given := c.entry(b.Name); given != nil {
			entry = *given
		}
		enabled := c.Has(b.Name)
		entry.Enabled = &enabled
		var err error
		if entry.Settings, err = json.Marshal(c.Settings.of(b.Name)); err != nil {
			return nil, err
		}
		out.Webhooks = append(out.Webhooks, entry)
	}
	return &out, nil
}

// entry returns the configuration's entry for a built-in webhook, or nil.
func (c *Config) entry(name string) *configv1alpha1.Webhook {
	for i := range c.Webhooks {
		if c.Webhooks[i].Name == name {
			return &c.Webhooks[i]
		}
	}
	return nil
}

// Has reports whether a built-in webhook is enabled.
func (c *Config) Has(name string) bool {
	entry := c.entry(name)
	return entry != nil && (entry.Enabled == nil || *entry.Enabled)
}

// AppRegistration returns the registration settings.
func (c *Config) AppRegistration() frontdoor.RegistrationSettings {
	r := &c.Registration
	return frontdoor.RegistrationSettings{
		Mode: registration.Mode(r.Mode), StaticManifestsDir: r.StaticManifestsDir, Owner: r.Owner, Service: r.Service, URL: r.URL,
		Name: r.Name, NamespaceSelector: r.NamespaceSelector, ExcludedNamespaces: r.ExcludedNamespaces, OwnPods: r.OwnPods,
		SharedNamespace: r.SharedNamespace, AllowWedge: r.AllowWedge,
		FailurePolicy: r.FailurePolicy, TimeoutSeconds: r.TimeoutSeconds, ReviewVersions: r.ReviewVersions,
		RefuseForeignTerms: r.ForeignTerms == foreignTermsRefuse,
		Adjust:             c.adjust,
	}
}

// AppCertificate returns the certificate settings.
func (c *Config) AppCertificate() frontdoor.CertificateSettings {
	from, out := &c.Certificate, frontdoor.DefaultCertificateSettings(Name)
	out.Source, out.Secret = from.Source, from.AuthoritySecret
	out.CertFile, out.KeyFile, out.CAFile = from.CertFile, from.PrivateKeyFile, from.CAFile
	out.CertificateLifetime, out.AuthorityLifetime, out.Propagation = from.Lifetime.Duration, from.CALifetime.Duration, from.CAPropagation.Duration
	return out
}

// AppLeaderElection returns the leader election settings.
func (c *Config) AppLeaderElection() frontdoor.LeaderElectionSettings {
	from := &c.LeaderElection
	return frontdoor.LeaderElectionSettings{
		Enabled: from.LeaderElect, LeaseDuration: from.LeaseDuration.Duration, RenewDeadline: from.RenewDeadline.Duration, RetryPeriod: from.RetryPeriod.Duration,
	}
}

// AppServing returns the addresses and limits.
func (c *Config) AppServing() serving.Options {
	from, out := &c.Serving, serving.DefaultOptions()
	out.BindAddress, out.Port, out.MetricsBindAddress, out.HTTP2 = from.BindAddress, from.SecurePort, from.MetricsBindAddress, from.HTTP2
	out.ReadHeaderTimeout, out.ReadTimeout = from.ReadHeaderTimeout.Duration, from.ReadTimeout.Duration
	out.WriteTimeout, out.IdleTimeout = from.WriteTimeout.Duration, from.IdleTimeout.Duration
	out.MaxHeaderBytes, out.MaxBodyBytes, out.MaxBytesInFlight, out.MinBodyRate = from.MaxHeaderBytes, from.MaxBodyBytes, from.MaxBytesInFlight, from.MinBodyRate
	out.MaxConcurrentReviews, out.MaxWaitingReviews = from.MaxConcurrentReviews, from.MaxWaitingReviews
	out.MaxConnections, out.MaxMetricsConnections = from.MaxConnections, from.MaxMetricsConnections
	out.DrainMin, out.DrainMax = from.DrainMin.Duration, from.DrainTimeout.Duration
	return out
}

// tracing returns the tracing settings.
func (c *Config) tracing() *tracing.Settings {
	return &tracing.Settings{Endpoint: c.Tracing.Endpoint, SamplingRatePerMillion: c.Tracing.SamplingRatePerMillion}
}

// appSettings returns the settings of the application.
func (c *Config) appSettings() frontdoor.Settings {
	from := &c.Authentication
	private := frontdoor.PrivatePathsAuto
	switch {
	case from.PrivatePaths == nil:
	case *from.PrivatePaths:
		private = "true"
	default:
		private = "false"
	}
	return frontdoor.Settings{
		Kubeconfig: c.Kubeconfig, Serving: c.AppServing(), Certificate: c.AppCertificate(),
		Registration: c.AppRegistration(), LeaderElection: c.AppLeaderElection(),
		Authentication: frontdoor.AuthenticationSettings{
			Mode: from.Mode, ClientCAFile: from.ClientCAFile, ClientCommonNames: from.ClientCommonNames, Metrics: from.Metrics, PrivatePaths: private,
		},
		Webhooks: []string{"*"}, Controllers: []string{"*"},
	}
}

// OfDeployment lists fields that a server requires. Commands that start no server do not need
// them.
var OfDeployment = []string{
	"registration.service", "registration.staticManifestsDir", "certificate.certFile", "certificate.privateKeyFile", "authentication.clientCAFile",
}
