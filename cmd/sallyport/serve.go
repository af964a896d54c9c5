// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

func newServeCommand() *cobra.Command {
	o := serve.Options{Version: buildVersion()}
	cmd := &cobra.Command{
		Use:   "serve --service NAMESPACE/NAME | --url URL",
		Short: "Run the webhook server",
		Long: "Serve the API server's admission reviews, manage the serving certificate, and register the webhooks: the\n" +
			"webhook configurations are written once the server is ready, and then kept in sync.\n\n" +
			"Flags cover the settings that differ between installations. Limits, timeouts, lifetimes and the settings of single\n" +
			"webhooks are only in the file of --config: 'sallyport config print' shows all fields.\n\n" +
			"On SIGTERM the server keeps serving while its endpoint is removed from the Service, and exits once all\n" +
			"connections are closed; a second signal ends it immediately.",
		Example: "  # in a cluster, behind the Service webhooks in the namespace sallyport-system\n" +
			"  sallyport serve --service sallyport-system/webhooks\n\n" +
			"  # with two of the ready-made webhooks\n" +
			"  sallyport serve --service sallyport-system/webhooks --webhooks poddefault,imagepull\n\n" +
			"  # configured by a file, see 'sallyport config'\n" +
			"  sallyport serve --config sallyport.yaml\n\n" +
			"  # for an API server on this machine\n" +
			"  sallyport serve --kubeconfig ~/.kube/config --url https://127.0.0.1:9443 --bind-address 127.0.0.1\n\n" +
			"  # with a certificate of cert-manager, without writing webhook configurations\n" +
			"  sallyport serve --registration None --certificate-source Files \\\n" +
			"    --tls-cert-file /certs/tls.crt --tls-private-key-file /certs/tls.key",
		Args: cli.NoArguments("use flags, and a file with --config"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Given, o.Log = setting.GivenTo(cmd.Flags()), cmd.ErrOrStderr()
			return serve.Run(cmd.Context(), o)
		},
	}
	cli.AddFlagGroup(cmd, "Configuration", func() { addConfigFlag(cmd, &o.File) })
	defaults := serve.Default()
	for flags := serve.Flags(); len(flags) > 0; {
		group := flags[0].Group
		cli.AddFlagGroup(cmd, group, func() {
			for ; len(flags) > 0 && flags[0].Group == group; flags = flags[1:] {
				setting.Bind(cmd, defaults, flags[0])
			}
		})
	}
	return cmd
}

// addConfigFlag adds the flag that names a configuration.
func addConfigFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "config", "", "`file` with a SallyportConfiguration; flags override it")
	cli.CompleteFiles(cmd, "config", manifest.Extensions...)
}

// addServerFlags adds the named flags of serve to another command.
func addServerFlags(cmd *cobra.Command, defaults *serve.Config, names ...string) {
	for _, flag := range serve.Flags() {
		if slices.Contains(names, flag.Name) {
			setting.Bind(cmd, defaults, flag)
		}
	}
}
