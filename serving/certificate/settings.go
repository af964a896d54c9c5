// SPDX-License-Identifier: Apache-2.0

package certificate

import "time"

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
	// source is Authority for a self-managed certificate authority that all replicas share
	// through a Secret, or Files. Default Authority.
	Source string `json:"source"`
	// authoritySecret is the Secret that stores the authority, namespace/name. Only used if
	// source is Authority. If empty, the Secret NAME-authority in the namespace of the
	// Service, where NAME is the application's; with a URL, the authority is held in
	// memory.
	AuthoritySecret string `json:"authoritySecret,omitempty"`
	// lifetime is how long a serving certificate is valid. It is renewed after two thirds
	// of its lifetime. Only used if source is Authority. Default 48h.
	Lifetime time.Duration `json:"lifetime"`
	// caLifetime is how long a new CA certificate is valid. It is replaced after two thirds
	// of its lifetime. Only used if source is Authority. Default ten years, because each
	// rotation changes every webhook configuration twice.
	CALifetime time.Duration `json:"caLifetime"`
	// caPropagation is the time after which all replicas and API servers have observed a
	// change of the CA bundle. A rotation waits that long twice. Only used if source is
	// Authority. Default 2m.
	CAPropagation time.Duration `json:"caPropagation"`
	// certFile is the path of the PEM-encoded certificate and its chain. It is reloaded
	// when it changes. Only used if source is Files.
	CertFile string `json:"certFile,omitempty"`
	// privateKeyFile is the path of the PEM-encoded private key. Only used if source is
	// files.
	PrivateKeyFile string `json:"privateKeyFile,omitempty"`
	// caFile is the path of the PEM-encoded CA bundle for the API server to trust. Leave it
	// empty if something else, such as cert-manager's CA injector, writes the caBundle.
	// Only used if source is Files.
	CAFile string `json:"caFile,omitempty"`

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
