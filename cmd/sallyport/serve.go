// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/server"
)

func newServeCommand() *cobra.Command {
	o := server.Options{Version: buildVersion()}
	cmd := &cobra.Command{
		Use:   "serve --service NAMESPACE/NAME | --url URL",
		Short: "Serve the webhooks to an API server",
		Long: "Serve answers the API server's admission reviews, keeps its own certificate, and registers\n" +
			"itself: the webhook configurations are written once it is ready, and kept true.\n\n" +
			"Flags are for what differs between installations. Limits, timeouts, lifetimes and the settings of\n" +
			"single webhooks are in the file of --config alone: 'sallyport config print' shows all fields.\n\n" +
			"On SIGTERM it goes on answering while its endpoint is being taken out of service, and ends\n" +
			"when nobody is connected any more; a second signal ends it at once.",
		Example: "  # in a cluster, behind the Service webhooks in the namespace sallyport-system\n" +
			"  sallyport serve --service sallyport-system/webhooks\n\n" +
			"  # with two of the ready-made webhooks\n" +
			"  sallyport serve --service sallyport-system/webhooks --webhooks poddefault,imagepull\n\n" +
			"  # as a file says, see 'sallyport config'\n" +
			"  sallyport serve --config sallyport.yaml\n\n" +
			"  # beside an API server on this machine\n" +
			"  sallyport serve --kubeconfig ~/.kube/config --url https://127.0.0.1:9443 --bind-address 127.0.0.1\n\n" +
			"  # with a certificate of cert-manager, and configurations that somebody else writes\n" +
			"  sallyport serve --registration none --certificate-source files \\\n" +
			"    --tls-cert-file /certs/tls.crt --tls-private-key-file /certs/tls.key",
		Args: noArguments("everything is said by flags, and a file that --config names"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Given, o.Log = cmd.Flags(), cmd.ErrOrStderr()
			return server.Run(cmd.Context(), o)
		},
	}
	addFlagGroup(cmd, "Configuration", func() { addConfigFlag(cmd, &o.File) })
	defaults := server.Default()
	for flags := server.Flags(); len(flags) > 0; {
		group := flags[0].Group
		addFlagGroup(cmd, group, func() {
			for ; len(flags) > 0 && flags[0].Group == group; flags = flags[1:] {
				addServerFlag(cmd, flags[0], defaults)
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

// addServerFlags adds those flags of serve that another command takes too.
func addServerFlags(cmd *cobra.Command, defaults *server.Config, names ...string) {
	for _, flag := range server.Flags() {
		if slices.Contains(names, flag.Name) {
			addServerFlag(cmd, flag, defaults)
		}
	}
}

func addServerFlag(cmd *cobra.Command, flag server.Flag, defaults *server.Config) {
	server.AddFlag(cmd.Flags(), flag, defaults)
	switch choices := flag.Choices(); {
	case len(choices) > 0:
		cli.CompleteChoices(cmd, flag.Name, choices)
	case flag.File:
		cli.CompleteFiles(cmd, flag.Name)
	case flag.Folder:
		cli.CompleteFolders(cmd, flag.Name)
	}
}
