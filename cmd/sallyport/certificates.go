// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/server"
)

// certificatesOptions say which authority, in which cluster.
type certificatesOptions struct {
	kubeconfig   string
	context      string
	certificates frontdoor.CertificateSettings
	registration frontdoor.RegistrationSettings
}

func newCertificatesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certificates",
		Short: "Look at the certificate authority in a cluster, and replace it",
		Long: "Certificates is about the authority that signs the serving certificates of all replicas, and\n" +
			"that is kept in a Secret (serve --certificate-source authority).",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q: choose status or rotate", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCertificatesStatusCommand(), newCertificatesRotateCommand())
	return cmd
}

func newCertificatesOptions() certificatesOptions {
	defaults := server.Default()
	return certificatesOptions{certificates: defaults.AppCertificate(), registration: defaults.AppRegistration()}
}

// addFlags adds the flags that say which authority.
func (o *certificatesOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	addFlagGroup(cmd, "Cluster", func() {
		flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server; empty for $KUBECONFIG, ~/.kube/config, or the service account of the pod")
		flags.StringVar(&o.context, "context", "", "`name` of the context in the kubeconfig; empty for its current one")
		cli.CompleteFiles(cmd, "kubeconfig")
	})
	addFlagGroup(cmd, "Authority", func() {
		flags.StringVar(&o.registration.Service, "service", "", "the Service of the server, `namespace/name[:port]`: its authority is the Secret "+o.certificates.DefaultSecret+" beside it")
		flags.StringVar(&o.certificates.Secret, "authority-secret", "", "the Secret of the authority, `namespace/name`, if the server was given this flag")
	})
}

// validate reports every mistake in the flags of addFlags.
func (o *certificatesOptions) validate() error {
	if o.certificates.Secret == "" && o.registration.Service == "" {
		return errors.New("--service or --authority-secret is needed: write what the server was given")
	}
	errs := []error{o.certificates.ValidateSource()}
	if o.registration.Service != "" {
		errs = append(errs, o.registration.ValidateEndpoint())
	}
	return hosting.ByFlags(errors.Join(errs...))
}

// secret is where the authority is; the options were validated.
func (o *certificatesOptions) secret() (namespace, name string) {
	namespace, name, _ = o.certificates.AuthoritySecret(o.registration.Config().Endpoint)
	return namespace, name
}

// client reaches the cluster that a person works with.
func (o *certificatesOptions) client() (kubernetes.Interface, error) {
	config, err := o.clientConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// clientConfig finds the cluster that a person works with as kubectl does.
func (o *certificatesOptions) clientConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	config.UserAgent = "sallyport/" + buildVersion()
	return config, nil
}
