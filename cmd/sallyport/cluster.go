// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/workload"
)

// clusterFlags say which cluster is meant and which namespace, as kubectl's do.
type clusterFlags struct {
	clusterOptions
	namespace string
}

func (f *clusterFlags) addFlags(cmd *cobra.Command) {
	f.clusterOptions.addFlags(cmd)
	addFlagGroup(cmd, "Cluster", func() {
		cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "`namespace` that is looked at; empty for that of the context")
	})
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return f.complete(cmd, "/api/v1/namespaces"), cobra.ShellCompDirectiveNoFileComp
	})
}

// complete lists names for a shell; none if that takes long.
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

// completeWorkloads offers TYPE/ and, behind it, names of the cluster.
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

// errWhat is for commands that want either files or the name of an object.
func errWhat(files, args []string) error {
	switch {
	case len(files) > 0 && len(args) > 0:
		return errors.New("name an object or give files with -f, not both")
	case len(files) == 0 && len(args) == 0:
		return errors.New("name an object, for example pod/web-0, or give files with -f")
	}
	return nil
}
