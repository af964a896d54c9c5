// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// certificateSource returns the source of the certificate that the flags select:
//
//	--webhook-tls-cert-file, or a pair in --webhook-cert-dir   those files
//	--webhook-cert-dir without a pair                           an authority kept there
//	--webhook-registration=API                                  an authority in a Secret, shared by all replicas
//	otherwise                                                   an authority in memory
func (s *settings) certificateSource(client kubernetes.Interface, authority certificate.AuthorityOptions) (certificate.Source, error) {
	files := certificate.FilesOptions{
		CertFile: s.Certificate.CertFile, KeyFile: s.Certificate.PrivateKeyFile, CAFile: s.Certificate.CAFile, Logger: authority.Logger, Registry: authority.Registry,
	}
	if files.CertFile == "" && s.certDir != "" {
		files.CertFile, files.KeyFile = filepath.Join(s.certDir, pairName+".crt"), filepath.Join(s.certDir, pairName+".key")
		if _, err := os.Stat(files.CertFile); err != nil {
			files.CertFile = ""
		}
	}
	if files.CertFile != "" {
		source, err := certificate.NewFiles(files)
		if err != nil {
			return nil, fmt.Errorf("--webhook-tls-cert-file, --webhook-cert-dir: %w", err)
		}
		return source, nil
	}
	authority.DNSNames, authority.IPAddresses = s.hosts(s.config().Endpoint)
	switch namespace, name := s.secret(); {
	case s.certDir != "":
		authority.SecretName = s.Certificate.DefaultSecret
		var err error
		if authority.Secrets, err = newFolder(s.certDir); err != nil {
			return nil, fmt.Errorf("--webhook-cert-dir: %w", err)
		}
	case name != "":
		authority.Secrets, authority.SecretName = client.CoreV1().Secrets(namespace), name
	}
	return certificate.NewAuthority(authority)
}

// secret is the Secret of the authority that replicas share; empty if they share none.
func (s *settings) secret() (namespace, name string) {
	switch secret := s.Certificate.AuthoritySecret; {
	case secret == inMemory || secret == "" && s.Registration.Mode != registration.ModeAPI:
		return "", ""
	case secret != "":
		namespace, name, _ = strings.Cut(secret, "/")
		return namespace, name
	}
	if service := s.Registration.Service; service != nil {
		return service.Namespace, s.Certificate.DefaultSecret
	}
	return metav1.NamespaceSystem, s.Certificate.DefaultSecret
}

// hosts are the names of the certificate: those that the API server expects, and those of
// this host.
func (s *settings) hosts(endpoint registration.Endpoint) (names []string, addresses []net.IP) {
	names, addresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	add := func(ip net.IP) {
		if !ip.IsUnspecified() && !slices.ContainsFunc(addresses, ip.Equal) {
			addresses = append(addresses, ip)
		}
	}
	add(s.bindIP())
	if service := endpoint.Service; service != nil {
		return append(names, service.Name+"."+service.Namespace+".svc"), addresses
	}
	if u, err := url.Parse(endpoint.URL); err == nil {
		if ip := net.ParseIP(u.Hostname()); ip != nil {
			add(ip)
		} else if u.Hostname() != "localhost" {
			names = append(names, u.Hostname())
		}
	}
	return names, addresses
}

// byName selects the certificate of --webhook-tls-sni-cert-key that matches the server
// name, or else that of the first source.
type byName struct {
	certificate.Source
	named []named
}

type named struct {
	source   *certificate.Files
	patterns []string // empty for the names in the certificate
}

// namedCertificates loads the certificates of --webhook-tls-sni-cert-key.
func (s *settings) namedCertificates(options certificate.FilesOptions) ([]named, error) {
	var all []named
	for _, pair := range s.sniCertKeys {
		options.CertFile, options.KeyFile = pair.CertFile, pair.KeyFile
		files, err := certificate.NewFiles(options)
		if err != nil {
			return nil, fmt.Errorf("--webhook-tls-sni-cert-key %s: %w", pair.CertFile, err)
		}
		all = append(all, named{files, pair.Names})
	}
	return all, nil
}

// GetCertificate prefers exact patterns to wildcards, and those to the names in a
// certificate.
func (b *byName) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	wildcard := ""
	if _, domain, ok := strings.Cut(hello.ServerName, "."); ok {
		wildcard = "*." + domain
	}
	for _, name := range []string{hello.ServerName, wildcard} {
		for _, n := range b.named {
			if name != "" && slices.Contains(n.patterns, name) {
				return n.source.GetCertificate(hello)
			}
		}
	}
	for _, n := range b.named {
		if len(n.patterns) > 0 || hello.ServerName == "" {
			continue
		}
		if pair, err := n.source.GetCertificate(hello); err == nil && hello.SupportsCertificate(pair) == nil {
			return pair, nil
		}
	}
	return b.Source.GetCertificate(hello)
}
