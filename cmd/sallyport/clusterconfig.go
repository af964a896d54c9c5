// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// clusterOptions say which cluster a person looks at. $KUBECONFIG counts too, as nothing
// is written there.
type clusterOptions struct {
	kubeconfig string
	context    string
}

func (o *clusterOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	addFlagGroup(cmd, "Cluster", func() {
		flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server; empty for $KUBECONFIG, ~/.kube/config, or the service account of the pod")
		flags.StringVar(&o.context, "context", "", "`name` of the context in the kubeconfig; empty for its current one")
		cli.CompleteFiles(cmd, "kubeconfig")
	})
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		config, err := o.loader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
}

func (o *clusterOptions) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
}

// clientConfig finds the cluster as kubectl does. Reading a whole cluster takes more
// calls than the client allows itself by default.
func (o *clusterOptions) clientConfig() (*rest.Config, error) {
	config, err := o.loader().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("how to reach the API server: %w; name a kubeconfig with --kubeconfig", err)
	}
	config.UserAgent = "sallyport/" + buildVersion()
	config.QPS, config.Burst = 50, 100
	return config, nil
}
