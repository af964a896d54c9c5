// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
)

func clusterFlags() clusterflags.Flags {
	return clusterflags.Flags{UserAgent: "sallyport/" + buildVersion()}
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

// addAllNamespacesFlag adds --all-namespaces.
func addAllNamespacesFlag(cmd *cobra.Command, all *bool) {
	cli.AddFlagGroup(cmd, "Cluster", func() {
		cmd.Flags().BoolVarP(all, "all-namespaces", "A", false, "compare the pods of all namespaces")
	})
}

// allOrOneNamespace refuses --all-namespaces with --namespace.
func allOrOneNamespace(all bool, namespace string) error {
	if all && namespace != "" {
		return errors.New("--all-namespaces and --namespace cannot be used together")
	}
	return nil
}
