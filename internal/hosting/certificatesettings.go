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
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/registration"
)

// Where the serving certificate may come from.
const (
	// SourceAuthority is an authority of its own, shared by all replicas.
	SourceAuthority = "authority"
	// SourceFiles are files that somebody else keeps.
	SourceFiles = "files"
)

var certificateSources = []string{SourceAuthority, SourceFiles}

// CertificateSettings say where the serving certificate comes from.
type CertificateSettings struct {
	// Source is [SourceAuthority] or [SourceFiles]. Default SourceAuthority.
	Source string
	// CertFile, KeyFile and CAFile are for SourceFiles: the certificate and its chain,
	// its key, and, unless somebody else writes the caBundle, what the API server
	// shall trust. All PEM.
	CertFile, KeyFile, CAFile string
	// Secret is for SourceAuthority: where it is kept, "namespace/name". Empty means
	// DefaultSecret in the namespace of the Service; without a Service the authority
	// is in memory.
	Secret string
	// DefaultSecret is a name.
	DefaultSecret string
	// CertificateLifetime, AuthorityLifetime and Propagation are for SourceAuthority:
	// those of [certificate.AuthorityOptions].
	CertificateLifetime, AuthorityLifetime, Propagation time.Duration
}

// DefaultCertificateSettings are those of an application of that name.
func DefaultCertificateSettings(name string) CertificateSettings {
	return CertificateSettings{
		Source: SourceAuthority, DefaultSecret: name + "-authority",
		CertificateLifetime: 48 * time.Hour, AuthorityLifetime: 10 * 365 * 24 * time.Hour, Propagation: 2 * time.Minute,
	}
}

// AddFlags binds the settings to flags. The values they have now are the defaults.
func (s *CertificateSettings) AddFlags(cmd *cobra.Command) {
	s.AddSourceFlags(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&s.CertificateLifetime, "certificate-lifetime", s.CertificateLifetime,
		"with --certificate-source authority: `time` that a serving certificate is valid; renewed after two thirds")
	flags.DurationVar(&s.AuthorityLifetime, "ca-lifetime", s.AuthorityLifetime,
		"with --certificate-source authority: `time` that a new authority is valid; another one follows after two thirds")
	flags.DurationVar(&s.Propagation, "ca-propagation", s.Propagation,
		"with --certificate-source authority: `time` in which all replicas and API servers know of a change; a rotation waits that long twice")
	flags.StringVar(&s.CertFile, "tls-cert-file", s.CertFile, "with --certificate-source files: `file` with the certificate and its chain, PEM; read again when it changes")
	flags.StringVar(&s.KeyFile, "tls-private-key-file", s.KeyFile, "with --certificate-source files: `file` with the key, PEM")
	flags.StringVar(&s.CAFile, "tls-ca-file", s.CAFile, "with --certificate-source files: `file` with what the API server shall trust, PEM; empty if somebody else writes the caBundle")
	cli.CompleteFiles(cmd, "tls-cert-file")
	cli.CompleteFiles(cmd, "tls-private-key-file")
	cli.CompleteFiles(cmd, "tls-ca-file")
}

// AddSourceFlags adds those of the flags on which the rights of the server depend.
func (s *CertificateSettings) AddSourceFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Source, "certificate-source", cmp.Or(s.Source, SourceAuthority),
		"`source` of the serving certificate: an authority of its own that all replicas share in a Secret (authority), or files (files)")
	flags.StringVar(&s.Secret, "authority-secret", s.Secret,
		"with --certificate-source authority: the Secret, `namespace/name` (default "+s.DefaultSecret+" in the namespace of --service; with --url an authority in memory)")
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
		errs = append(errs, problemf("%s files needs %s"+strings.Repeat(" and %s", len(missing)-1), slices.Insert(missing, 0, any(setting("certificate-source")))...))
	}
	if len(useless) > 0 {
		errs = append(errs, problemf("%s"+strings.Repeat(", %s", len(useless)-1)+": of no use without %s files", append(useless, setting("certificate-source"))...))
	}
	return errors.Join(errs...)
}

// ValidateSource reports every problem in the flags of AddSourceFlags.
func (s *CertificateSettings) ValidateSource() error {
	errs := []error{choice("certificate-source", s.Source, certificateSources)}
	if s.Source == SourceFiles && s.Secret != "" {
		errs = append(errs, problemf("%s: of no use with %s files", setting("authority-secret"), setting("certificate-source")))
	}
	namespace, name, _ := strings.Cut(s.Secret, "/")
	if s.Secret != "" && (len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0) {
		errs = append(errs, problemf("%s %q: write NAMESPACE/NAME, for example sallyport-system/%s", setting("authority-secret"), s.Secret, s.DefaultSecret))
	}
	return errors.Join(errs...)
}

// Open makes the source. What an authority in a Secret needs of others is in base.
// Conversion may be nil.
func (s *CertificateSettings) Open(clients kubernetes.Interface, endpoint registration.Endpoint, conversion *registration.Endpoint, base certificate.AuthorityOptions) (certificate.Source, error) {
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
		options.Secrets, options.SecretName = clients.CoreV1().Secrets(namespace), name
	} else {
		options.Logger.Warn("the certificate authority is kept in memory and will be another one after a restart; name a Secret for it")
	}
	return certificate.NewAuthority(options)
}

// AuthoritySecret is where the authority is kept, if there is one and it is kept
// anywhere.
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
