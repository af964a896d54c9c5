// SPDX-License-Identifier: Apache-2.0

// Package certificate has the settings of the serving certificate of webhooks, and what provides one.
//
// Experimental: only the types that the stable core names keep their promise, see docs/compatibility.md.
package certificate

import (
	"context"
	"crypto/tls"
	"time"
)

// The values of [Settings.Source].
const (
	// SourceAuthority issues the serving certificate from an authority that all replicas
	// share.
	SourceAuthority = "Authority"
	// SourceFiles reads the serving certificate from files, for example ones that
	// cert-manager renews.
	SourceFiles = "Files"
)

// Settings configure the source of the serving certificate. Start from [DefaultSettings].
type Settings struct {
	// source is the source of the serving certificate: a self-managed authority that all
	// replicas share through a Secret (Authority), or files (Files). Default Authority.
	Source string `json:"source" flag:"certificate-source" value:"source" group:"Certificate" enum:"Authority,Files"`
	// authoritySecret is the Secret of the authority, namespace/name. Only used if source is
	// Authority. If empty, NAME-authority in the namespace of the Service, where NAME is the
	// application's, and with a URL an authority in memory.
	AuthoritySecret string `json:"authoritySecret,omitempty" flag:"authority-secret" with:"source=Authority" value:"namespace/name" group:"Certificate"`
	// lifetime is the time a serving certificate is valid. It is renewed after two thirds of
	// that. Only used if source is Authority. Default 48h.
	Lifetime time.Duration `json:"lifetime" flag:"certificate-lifetime" value:"time"`
	// caLifetime is the time a new CA certificate is valid. It is replaced after two thirds
	// of that. Only used if source is Authority. Default ten years, because each rotation
	// changes every webhook configuration twice.
	CALifetime time.Duration `json:"caLifetime" flag:"ca-lifetime" value:"time"`
	// caPropagation is the time after which all replicas and API servers have observed a
	// change of the CA bundle. A rotation waits that long twice. Only used if source is
	// Authority. Default 2m.
	CAPropagation time.Duration `json:"caPropagation" flag:"ca-propagation" value:"time"`
	// certFile is the file with the PEM-encoded serving certificate and its chain. It is
	// reloaded when it changes. Only used if source is Files.
	CertFile string `json:"certFile,omitempty" flag:"tls-cert-file" with:"source=Files,required" value:"file" group:"Certificate"`
	// privateKeyFile is the file with the PEM-encoded private key. Only used if source is
	// Files.
	PrivateKeyFile string `json:"privateKeyFile,omitempty" flag:"tls-private-key-file" with:"source=Files,required" value:"file" group:"Certificate"`
	// caFile is the file with the PEM-encoded CA bundle for the API server to trust. Leave it
	// empty if something else, such as cert-manager's CA injector, writes the caBundle.
	// Only used if source is Files.
	CAFile string `json:"caFile,omitempty" flag:"tls-ca-file" with:"source=Files" value:"file" group:"Certificate"`

	// DefaultSecret is the name of the Secret if AuthoritySecret is empty.
	DefaultSecret string `json:"-"`
}

// DefaultSettings returns the documented defaults for an application of that name.
func DefaultSettings(name string) Settings {
	return Settings{
		Source: SourceAuthority, Lifetime: 48 * time.Hour, CALifetime: 10 * 365 * 24 * time.Hour, CAPropagation: 2 * time.Minute,
		DefaultSecret: name + "-authority",
	}
}

// Source provides the serving certificate. Its methods are safe for concurrent use.
type Source interface {
	// GetCertificate returns the certificate for a handshake. It is for tls.Config and only
	// reads a pointer. An error means that there is no certificate yet.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)

	// CABundle returns the PEM-encoded CA bundle for the caBundle of webhook
	// configurations. It is nil if there is no certificate yet, or if the source does not
	// know its CA. The bytes must not be modified.
	CABundle() []byte

	// Changed returns a channel that is closed when the certificate or the bundle changes
	// next. Get the channel before the bundle, so as not to miss a change.
	Changed() <-chan struct{}

	// NotAfter returns when the certificate expires, or the zero time.
	NotAfter() time.Time

	// Ready returns nil if there is a valid certificate, and otherwise the reason.
	Ready() error

	// Run renews or reloads the certificate until ctx ends, and then returns nil. Failures
	// are logged and retried, and the current certificate stays in use. It must be called
	// only once.
	Run(ctx context.Context) error
}
