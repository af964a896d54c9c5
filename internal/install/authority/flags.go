// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// Flags choose an authority in a cluster. Server and Certificates start as the default settings of
// the server.
type Flags struct {
	cluster.Flags
	Server       hosting.RegistrationSettings
	Certificates hosting.CertificateSettings
}

// AddFlags adds the flags.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	f.Flags.AddFlags(cmd)
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Authority", func() {
		flags.StringVar(&f.Server.Service, "service", "", "the Service of the server, `namespace/name[:port]`; the authority is the Secret "+f.Certificates.DefaultSecret+" in its namespace")
		flags.StringVar(&f.Certificates.Secret, "authority-secret", "", "the Secret of the authority, `namespace/name`, if the server runs with this flag")
	})
}

// Named reports whether the flags identify an authority.
func (f *Flags) Named() bool {
	return f.Certificates.Secret != "" || f.Server.Service != ""
}

// Validate reports every problem of the flags; they must identify an authority.
func (f *Flags) Validate() error {
	if !f.Named() {
		return errors.New("--service or --authority-secret is required: use the value that the server runs with")
	}
	return f.ValidateGiven()
}

// ValidateGiven reports every problem of the flags that were given.
func (f *Flags) ValidateGiven() error {
	errs := []error{f.Certificates.ValidateSource()}
	if f.Server.Service != "" {
		errs = append(errs, f.Server.ValidateEndpoint())
	}
	return hosting.ByFlags(errors.Join(errs...))
}

// Authority opens the authority that the validated flags identify.
func (f *Flags) Authority() (Authority, error) {
	namespace, name, _ := f.Certificates.AuthoritySecret(f.Server.Config().Endpoint)
	config, err := f.ClientConfig()
	if err != nil {
		return Authority{}, err
	}
	config.WarningHandler = rest.NoWarnings{}
	clients, err := hosting.NewClients(config)
	return Authority{Clients: clients, Namespace: namespace, Name: name}, err
}
