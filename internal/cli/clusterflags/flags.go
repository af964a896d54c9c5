// SPDX-License-Identifier: Apache-2.0

// Package clusterflags has the flags that choose a cluster, and the authority of a server in it.
package clusterflags

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// Flags choose a cluster and a namespace as kubectl's flags do, including $KUBECONFIG.
type Flags struct {
	// UserAgent is the name of the program and its version.
	UserAgent                      string
	Kubeconfig, Context, Namespace string
}

// AddFlags adds the flags but --namespace.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Cluster", func() {
		flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "path of the kubeconfig `file`; defaults to $KUBECONFIG, ~/.kube/config, or the pod's service account")
		flags.StringVar(&f.Context, "context", "", "`name` of the kubeconfig context; defaults to the current context")
		cli.CompleteFiles(cmd, "kubeconfig")
	})
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		contexts, _ := f.Contexts() // completion has no place for an error
		slices.Sort(contexts)
		return contexts, cobra.ShellCompDirectiveNoFileComp
	})
}

// Contexts returns the names of the contexts of the kubeconfig, the chosen one first and the others sorted. There are
// none in a pod.
func (f *Flags) Contexts() ([]string, error) {
	config, err := f.loader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w; set --kubeconfig", err)
	}
	chosen := cmp.Or(f.Context, config.CurrentContext)
	names := slices.Sorted(maps.Keys(config.Contexts))
	slices.SortStableFunc(names, func(a, b string) int {
		switch chosen {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	return names, nil
}

// AddNamespacedFlags also adds --namespace.
func (f *Flags) AddNamespacedFlags(cmd *cobra.Command) {
	f.AddFlags(cmd)
	cli.AddFlagGroup(cmd, "Cluster", func() {
		cmd.Flags().StringVarP(&f.Namespace, "namespace", "n", "", "`namespace` to use; defaults to that of the context")
	})
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return f.Complete(cmd, "/api/v1/namespaces"), cobra.ShellCompDirectiveNoFileComp
	})
}

func (f *Flags) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.Context})
}

// ClientConfig finds the cluster as kubectl does. Reading a whole cluster takes more calls
// than the client's default rate limit allows.
func (f *Flags) ClientConfig() (*rest.Config, error) {
	config, err := f.loader().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w; set --kubeconfig", err)
	}
	config.UserAgent = f.UserAgent
	config.QPS, config.Burst = 50, 100
	config.Wrap(reporting)
	return config, nil
}

// Complete lists names for shell completion, and none if that takes too long.
func (f *Flags) Complete(cmd *cobra.Command, path string) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	c, err := f.Open()
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

// Open reads from the cluster that the flags choose.
func (f *Flags) Open() (*cluster.Cluster, error) {
	config, err := f.ClientConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := f.loader().Namespace()
	if err != nil {
		return nil, err
	}
	return cluster.New(config, cmp.Or(f.Namespace, namespace))
}

// CompleteWorkloads completes TYPE/ and then names in the cluster.
func (f *Flags) CompleteWorkloads(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
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
			c, err := f.Open()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, name := range f.Complete(cmd, k.Path(c.Namespace)) {
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
