// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/install/deployment"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

func newExportCommand() *cobra.Command {
	var files []string
	file, plugin := "", ""
	cmd := &cobra.Command{
		Use:   "export -f FILE",
		Short: "Print PodDefaults as policies that the API server evaluates without a server",
		Long: "Print the PodDefaults of files as policies that the API server of Kubernetes 1.36 or later evaluates\n" +
			"itself, instead of a server. Comments list their limitations. A PodDefault that would silently behave\n" +
			"differently than with the webhook is an error.",
		Example: "  # injection by the API server itself\n" +
			"  kubectl get poddefaults -A -o yaml | sallyport export -f - | kubectl apply -f -\n\n" +
			"  # policies that cannot be deleted through the API: one file for each plugin of kube-apiserver\n" +
			"  sallyport export -f poddefaults/ --static-plugin MutatingAdmissionPolicy > mutating/poddefaults.yaml\n" +
			"  sallyport export -f poddefaults/ --static-plugin ValidatingAdmissionPolicy > validating/poddefaults.yaml\n\n" +
			"  # with the settings of a server\n" +
			"  sallyport export -f poddefaults/ --config sallyport.yaml",
		Args: cli.NoArguments("pass the files with the PodDefaults with -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := serve.Load(file, nil, serve.OfDeployment...)
			if plugin != "" {
				err = errors.Join(err, cli.Choice("static-plugin", plugin, deployment.PolicyPlugins))
			}
			if len(files) == 0 {
				err = errors.Join(err, errors.New("-f is required: pass a file with the PodDefaults, or - for stdin"))
			}
			if err := errors.Join(err, manifest.StdinOnce(files)); err != nil {
				return err
			}
			exported, err := deployment.Policies(files, cmd.InOrStdin(), serve.PodDefault(config).Settings)
			if err != nil {
				return err
			}
			if plugin != "" {
				exported = deployment.StaticPolicies(exported, plugin)
			}
			return deployment.PrintPolicies(cmd.OutOrStdout(), exported)
		},
	}
	cli.AddFlagGroup(cmd, "Input", func() {
		cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "`file` or folder with the PodDefaults, YAML or JSON; - for stdin; may be repeated")
		cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
	})
	cli.AddFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVar(&plugin, "static-plugin", "", "print static admission manifests, which kube-apiserver 1.37 reads from files, for one of its `plugin`s: "+cli.OneOf(deployment.PolicyPlugins))
		cli.CompleteChoices(cmd, "static-plugin", deployment.PolicyPlugins)
	})
	cli.AddFlagGroup(cmd, "Server configuration", func() { addConfigFlag(cmd, &file) })
	return cmd
}
