// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"strings"

	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// OpenCertificate creates the source of a certificate. Base
// has the options of an authority in a Secret that come from other settings. Conversion may be nil.
func OpenCertificate(s *certificate.Settings, secrets coreclient.SecretsGetter, endpoint registration.Endpoint, conversion *registration.Endpoint, base certificate.AuthorityOptions) (certificate.Source, error) {
	if s.Source == certificate.SourceFiles {
		return certificate.NewFiles(certificate.FilesOptions{
			CertFile: s.CertFile, KeyFile: s.PrivateKeyFile, CAFile: s.CAFile, Logger: base.Logger, Registry: base.Registry,
		})
	}
	options := base
	options.Lifetime, options.CertificateLifetime, options.Propagation = s.CALifetime, s.Lifetime, s.CAPropagation
	options.DNSNames, options.IPAddresses = Hosts(endpoint)
	if conversion != nil && conversion.Service != nil {
		names, _ := Hosts(*conversion)
		options.DNSNames = append(options.DNSNames, names...)
	}
	if namespace, secret, ok := AuthoritySecret(s, endpoint); ok {
		options.Secrets, options.SecretName = secrets.Secrets(namespace), secret
	} else {
		options.Logger.Warn("the certificate authority is held in memory and will change on restart; store it in a Secret")
	}
	return certificate.NewAuthority(options)
}

// AuthoritySecret is the Secret that stores the authority, if there is one.
func AuthoritySecret(s *certificate.Settings, endpoint registration.Endpoint) (namespace, name string, ok bool) {
	switch {
	case s.Source == certificate.SourceFiles:
		return "", "", false
	case s.AuthoritySecret != "":
		return strings.Cut(s.AuthoritySecret, "/")
	case endpoint.Service != nil:
		return endpoint.Service.Namespace, s.DefaultSecret, true
	default:
		return "", "", false
	}
}
