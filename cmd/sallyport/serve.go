// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
)

type serveOptions struct {
	kubeconfig   string
	log          logOptions
	serving      serving.Options
	certificates certificateOptions
	mode         registration.Mode
	registration registrationOptions
	settings     poddefault.Settings
}

func newServeCommand() *cobra.Command {
	o := serveOptions{serving: serving.DefaultOptions(), settings: poddefault.DefaultSettings()}
	cmd := &cobra.Command{
		Use:   "serve --service NAMESPACE/NAME | --url URL",
		Short: "Serve the webhooks to an API server",
		Long: "Serve answers the API server's admission reviews, keeps its own certificate, and registers\n" +
			"itself: the webhook configurations are written once it is ready, and kept true.\n\n" +
			"On SIGTERM it goes on answering while its endpoint is being taken out of service, and ends\n" +
			"when nobody is connected any more; a second signal ends it at once.",
		Example: "  # in a cluster, behind the Service webhooks in the namespace sallyport-system\n" +
			"  sallyport serve --service sallyport-system/webhooks\n\n" +
			"  # beside an API server on this machine\n" +
			"  sallyport serve --kubeconfig ~/.kube/config --url https://127.0.0.1:9443 --bind-address 127.0.0.1\n\n" +
			"  # with a certificate of cert-manager, and configurations that somebody else writes\n" +
			"  sallyport serve --registration none --certificate-source files \\\n" +
			"    --tls-cert-file /certs/tls.crt --tls-private-key-file /certs/tls.key",
		Args: noArguments("everything is said by flags"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	addFlagGroup(cmd, "API server", func() {
		flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server; empty for the service account of the pod")
		completeFiles(cmd, "kubeconfig")
		addModeFlag(cmd, &o.mode)
		o.registration.addEndpointFlags(cmd)
	})
	addFlagGroup(cmd, "Webhook configurations", func() { o.registration.addFlags(cmd) })
	addFlagGroup(cmd, "Certificate", func() { o.certificates.addFlags(cmd) })
	addFlagGroup(cmd, "PodDefaults", func() { addPodDefaultFlags(flags, &o.settings) })
	addFlagGroup(cmd, "Addresses, limits and draining", func() { o.serving.AddFlags(flags) })
	addFlagGroup(cmd, "Log", func() { o.log.addFlags(cmd) })
	return cmd
}

// validate reports every mistake in the flags at once. What it returns is how to
// reach the API server, and what to write there.
func (o *serveOptions) validate() (*rest.Config, registration.Config, error) {
	endpoint := o.registration.validateEndpoint()
	if o.mode == registration.ModeNone && o.registration.noEndpoint() && o.certificates.source == sourceFiles {
		endpoint = nil // nobody needs to know it
	}
	client, err := kubeConfig(o.kubeconfig)
	err = errors.Join(
		o.log.validate(), endpoint, o.registration.validate(), o.certificates.validate(), o.serving.ValidateFlags(), err,
	)
	return client, o.registration.config(), err
}

// run serves until a signal ends it. From the first signal on the next one has its
// usual effect, and so ends the process whatever it is doing.
func (o *serveOptions) run(cmd *cobra.Command) error {
	client, config, err := o.validate()
	if err != nil {
		return err
	}
	s, err := o.build(client, config, o.log.logger(cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return s.run(ctx)
}
