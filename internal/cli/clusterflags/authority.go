// SPDX-License-Identifier: Apache-2.0

package clusterflags

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/install/authority"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// AuthorityFlags choose an authority in a cluster. Registration and Certificate start as the default settings
// of the server.
type AuthorityFlags struct {
	Flags
	AuthoritySettings

	flags *pflag.FlagSet
}

// AuthoritySettings are what flags are bound to. It has no methods: a value that reflection sees keeps all of its own in
// the program, and those of [Flags] need clients of all API groups.
type AuthoritySettings struct {
	Registration registration.Settings `json:"registration"`
	Certificate  certificate.Settings  `json:"certificate"`
}

// AddFlags adds the flags.
func (f *AuthorityFlags) AddFlags(cmd *cobra.Command) {
	f.Flags.AddFlags(cmd)
	f.Registration.Service, f.Certificate.AuthoritySecret, f.flags = nil, "", cmd.Flags()
	usages := map[string]string{
		"service":          "the Service through which the API server calls the server, `namespace/name[:port]`; the authority is the Secret " + f.Certificate.DefaultSecret + " in its namespace",
		"authority-secret": "the Secret of the authority, `namespace/name`, if the server runs with this flag",
	}
	cli.AddFlagGroup(cmd, "Authority", func() {
		for _, flag := range hosting.Flags(&f.AuthoritySettings, "", nil) {
			if usage := usages[flag.Name]; usage != "" {
				flag.Usage = usage
				setting.Bind(cmd, &f.AuthoritySettings, flag)
			}
		}
	})
}

// Named reports whether the flags identify an authority.
func (f *AuthorityFlags) Named() bool {
	return f.Certificate.AuthoritySecret != "" || f.Registration.Service != nil
}

// Validate reports every problem of the flags; they must identify an authority.
func (f *AuthorityFlags) Validate() error {
	if !f.Named() {
		return errors.New("--service or --authority-secret is required: use the value that the server runs with")
	}
	return f.ValidateGiven()
}

// ValidateGiven reports every problem of the flags that were given.
func (f *AuthorityFlags) ValidateGiven() error {
	return setting.ByFlags(f.flags, setting.Join(hosting.ValidateReferences(&f.Registration, &f.Certificate)))
}

// Authority opens the authority that the validated flags identify.
func (f *AuthorityFlags) Authority() (authority.Authority, error) {
	namespace, name, _ := hosting.AuthoritySecret(&f.Certificate, hosting.Config(&f.Registration).Endpoint)
	config, err := f.ClientConfig()
	if err != nil {
		return authority.Authority{}, err
	}
	config.WarningHandler = rest.NoWarnings{}
	clients, err := hosting.NewClients(config)
	return authority.Authority{Clients: clients, Namespace: namespace, Name: name}, err
}
