// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// clusterOptions say which cluster a person works with.
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
}

// clientConfig finds the cluster as kubectl does. Reading a whole cluster takes more
// calls than the client allows itself by default.
func (o *clusterOptions) clientConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	config.UserAgent = "sallyport/" + buildVersion()
	config.QPS, config.Burst = 50, 100
	return config, nil
}
