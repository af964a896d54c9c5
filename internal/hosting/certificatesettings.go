// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving/certificate"
)

// The sources of the serving certificate.
const (
	// SourceAuthority is a self-managed authority that all replicas share.
	SourceAuthority = "authority"
	// SourceFiles are files that something else maintains.
	SourceFiles = "files"
)

var certificateSources = []string{SourceAuthority, SourceFiles}

// CertificateSettings configure the source of the serving certificate.
type CertificateSettings struct {
	// Source is [SourceAuthority] or [SourceFiles]. Default SourceAuthority.
	Source string
	// CertFile, KeyFile and CAFile are PEM files for SourceFiles: the certificate and its
	// chain, its key, and the CA bundle for the API server to trust, unless something else
	// writes the caBundle.
	CertFile, KeyFile, CAFile string
	// Secret stores the authority of SourceAuthority, "namespace/name". Empty means
	// DefaultSecret in the namespace of the Service; without a Service, the authority is
	// held in memory.
	Secret string
	// DefaultSecret is the name of a Secret, without namespace.
	DefaultSecret string
	// CertificateLifetime, AuthorityLifetime and Propagation are the fields of
	// [certificate.AuthorityOptions], for SourceAuthority.
	CertificateLifetime, AuthorityLifetime, Propagation time.Duration
}

// DefaultCertificateSettings are the defaults for an application of that name.
func DefaultCertificateSettings(name string) CertificateSettings {
	return CertificateSettings{
		Source: SourceAuthority, DefaultSecret: name + "-authority",
		CertificateLifetime: 48 * time.Hour, AuthorityLifetime: 10 * 365 * 24 * time.Hour, Propagation: 2 * time.Minute,
	}
}

// AddFlags binds the settings to flags. Their current values are the defaults.
func (s *CertificateSettings) AddFlags(cmd *cobra.Command) {
	s.AddSourceFlags(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&s.CertificateLifetime, "certificate-lifetime", s.CertificateLifetime,
		"with --certificate-source authority: `time` a serving certificate is valid; it is renewed after two thirds")
	flags.DurationVar(&s.AuthorityLifetime, "ca-lifetime", s.AuthorityLifetime,
		"with --certificate-source authority: `time` a new CA certificate is valid; it is replaced after two thirds")
	flags.DurationVar(&s.Propagation, "ca-propagation", s.Propagation,
		"with --certificate-source authority: `time` after which all replicas and API servers have observed a change of the CA bundle; a rotation waits that long twice")
	flags.StringVar(&s.CertFile, "tls-cert-file", s.CertFile, "with --certificate-source files: `file` with the PEM-encoded certificate and its chain; reloaded when it changes")
	flags.StringVar(&s.KeyFile, "tls-private-key-file", s.KeyFile, "with --certificate-source files: `file` with the PEM-encoded private key")
	flags.StringVar(&s.CAFile, "tls-ca-file", s.CAFile, "with --certificate-source files: `file` with the PEM-encoded CA bundle for the API server to trust; empty if something else writes the caBundle")
	cli.CompleteFiles(cmd, "tls-cert-file")
	cli.CompleteFiles(cmd, "tls-private-key-file")
	cli.CompleteFiles(cmd, "tls-ca-file")
}

// AddSourceFlags adds the flags that determine the permissions of the server.
func (s *CertificateSettings) AddSourceFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Source, "certificate-source", cmp.Or(s.Source, SourceAuthority),
		"`source` of the serving certificate: a self-managed authority that all replicas share through a Secret (authority), or files (files)")
	flags.StringVar(&s.Secret, "authority-secret", s.Secret,
		"with --certificate-source authority: the Secret, `namespace/name` (default "+s.DefaultSecret+" in the namespace of --service; with --url, an authority in memory)")
	cli.CompleteChoices(cmd, "certificate-source", certificateSources)
}

// Validate reports every problem in the flags of AddFlags.
func (s *CertificateSettings) Validate() error {
	errs := []error{s.ValidateSource()}
	var missing, useless []any
	for _, file := range []struct {
		setting setting
		value   string
	}{{"tls-cert-file", s.CertFile}, {"tls-private-key-file", s.KeyFile}, {"tls-ca-file", s.CAFile}} {
		switch {
		case s.Source == SourceFiles && file.value == "" && file.setting != "tls-ca-file":
			missing = append(missing, file.setting)
		case s.Source == SourceAuthority && file.value != "":
			useless = append(useless, file.setting)
		}
	}
	if s.Source == SourceAuthority {
		for _, duration := range []struct {
			setting setting
			value   time.Duration
		}{{"certificate-lifetime", s.CertificateLifetime}, {"ca-lifetime", s.AuthorityLifetime}, {"ca-propagation", s.Propagation}} {
			if duration.value < 0 {
				errs = append(errs, problemf("%s %s must not be negative", duration.setting, duration.value))
			}
		}
		if s.CertificateLifetime > s.AuthorityLifetime && s.AuthorityLifetime > 0 {
			errs = append(errs, problemf("%s %s must be at most %s %s", setting("certificate-lifetime"), s.CertificateLifetime, setting("ca-lifetime"), s.AuthorityLifetime))
		}
	}
	if len(missing) > 0 {
		errs = append(errs, problemf("%s files requires %s"+strings.Repeat(" and %s", len(missing)-1), slices.Insert(missing, 0, any(setting("certificate-source")))...))
	}
	if len(useless) > 0 {
		errs = append(errs, problemf("%s"+strings.Repeat(", %s", len(useless)-1)+": only valid with %s files", append(useless, setting("certificate-source"))...))
	}
	return errors.Join(errs...)
}

// ValidateSource reports every problem in the flags of AddSourceFlags.
func (s *CertificateSettings) ValidateSource() error {
	errs := []error{choice("certificate-source", s.Source, certificateSources)}
	if s.Source == SourceFiles && s.Secret != "" {
		errs = append(errs, problemf("%s: not valid with %s files", setting("authority-secret"), setting("certificate-source")))
	}
	namespace, name, _ := strings.Cut(s.Secret, "/")
	if s.Secret != "" && (len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0) {
		errs = append(errs, problemf("%s %q: must be NAMESPACE/NAME, for example sallyport-system/%s", setting("authority-secret"), s.Secret, s.DefaultSecret))
	}
	return errors.Join(errs...)
}

// Open creates the source. Base has the options of an authority in a Secret that come from
// other settings. Conversion may be nil.
func (s *CertificateSettings) Open(secrets coreclient.SecretsGetter, endpoint registration.Endpoint, conversion *registration.Endpoint, base certificate.AuthorityOptions) (certificate.Source, error) {
	if s.Source == SourceFiles {
		return certificate.NewFiles(certificate.FilesOptions{
			CertFile: s.CertFile, KeyFile: s.KeyFile, CAFile: s.CAFile, Logger: base.Logger, Registry: base.Registry,
		})
	}
	options := base
	options.Lifetime, options.CertificateLifetime, options.Propagation = s.AuthorityLifetime, s.CertificateLifetime, s.Propagation
	options.DNSNames, options.IPAddresses = Hosts(endpoint)
	if conversion != nil && conversion.Service != nil {
		names, _ := Hosts(*conversion)
		options.DNSNames = append(options.DNSNames, names...)
	}
	if namespace, name, ok := s.AuthoritySecret(endpoint); ok {
		options.Secrets, options.SecretName = secrets.Secrets(namespace), name
	} else {
		options.Logger.Warn("the certificate authority is held in memory and will change on restart; store it in a Secret")
	}
	return certificate.NewAuthority(options)
}

// AuthoritySecret is the Secret that stores the authority, if there is one.
func (s *CertificateSettings) AuthoritySecret(endpoint registration.Endpoint) (namespace, name string, ok bool) {
	switch {
	case s.Source == SourceFiles:
		return "", "", false
	case s.Secret != "":
		return strings.Cut(s.Secret, "/")
	case endpoint.Service != nil:
		return endpoint.Service.Namespace, s.DefaultSecret, true
	default:
		return "", "", false
	}
}
