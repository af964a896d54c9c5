// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/workload"
)

// clusterFlags choose a cluster and a namespace as kubectl's flags do, including
// $KUBECONFIG.
type clusterFlags struct {
	kubeconfig, context, namespace string
}

func (f *clusterFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	addFlagGroup(cmd, "Cluster", func() {
		flags.StringVar(&f.kubeconfig, "kubeconfig", "", "path of the kubeconfig `file`; defaults to $KUBECONFIG, ~/.kube/config, or the pod's service account")
		flags.StringVar(&f.context, "context", "", "`name` of the kubeconfig context; defaults to the current context")
		cli.CompleteFiles(cmd, "kubeconfig")
	})
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		config, err := f.loader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
}

// addNamespacedFlags also adds --namespace.
func (f *clusterFlags) addNamespacedFlags(cmd *cobra.Command) {
	f.addFlags(cmd)
	addFlagGroup(cmd, "Cluster", func() {
		cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "`namespace` to use; defaults to that of the context")
	})
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return f.complete(cmd, "/api/v1/namespaces"), cobra.ShellCompDirectiveNoFileComp
	})
}

func (f *clusterFlags) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
}

// clientConfig finds the cluster as kubectl does. Reading a whole cluster takes more calls
// than the client's default rate limit allows.
func (f *clusterFlags) clientConfig() (*rest.Config, error) {
	config, err := f.loader().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w; set --kubeconfig", err)
	}
	config.UserAgent = "sallyport/" + buildVersion()
	config.QPS, config.Burst = 50, 100
	return config, nil
}

// complete lists names for shell completion, and none if that takes too long.
func (f *clusterFlags) complete(cmd *cobra.Command, path string) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	c, err := f.open()
	if err != nil {
		return nil
	}
	objects, err := c.List(ctx, path)
	if err != nil {
		return nil
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.Name)
	}
	return names
}

func (f *clusterFlags) open() (*cluster.Cluster, error) {
	config, err := f.clientConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := f.loader().Namespace()
	if err != nil {
		return nil, err
	}
	return cluster.New(config, cmp.Or(f.namespace, namespace))
}

// completeWorkloads completes TYPE/ and then names in the cluster.
func (f *clusterFlags) completeWorkloads(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	word, _, named := strings.Cut(typed, "/")
	var offered []string
	for _, k := range workload.Kinds() {
		if !named && strings.HasPrefix(strings.ToLower(k.Name), strings.ToLower(typed)) {
			offered = append(offered, strings.ToLower(k.Name)+"/")
		}
		if named && k.Named(word) {
			c, err := f.open()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, name := range f.complete(cmd, k.Path(c.Namespace)) {
				offered = append(offered, word+"/"+name)
			}
		}
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	if !named {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return offered, directive
}

// filesOrName requires either files or the name of an object.
func filesOrName(files, args []string) error {
	switch {
	case len(files) > 0 && len(args) > 0:
		return errors.New("name an object or pass files with -f, not both")
	case len(files) == 0 && len(args) == 0:
		return errors.New("name an object, for example pod/web-0, or pass files with -f")
	}
	return nil
}
