// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/install/deployment"
	"github.com/sallyport-io/sallyport/internal/install"
)

func newUninstallCommand() *cobra.Command {
	return install.UninstallCommand(install.Uninstaller{
		Long: "Remove the backstop policy of PodDefault injection with its parameters, reports about PodDefaults, and the\n" +
			"webhook configurations that a server wrote: its own webhooks only, or the whole objects if they contain\n" +
			"no others. With --static-manifests-dir, remove the static manifests instead.\n\n" +
			"A running server would write them again, so scale it down first: nothing is removed while a server holds\n" +
			"the lease of its authority. Remove the output of 'sallyport manifests' with kubectl delete, but only\n" +
			"afterwards: a policy whose CustomResourceDefinition is gone rejects every pod.",
		Example: "  kubectl --namespace sallyport-system scale deployment sallyport --replicas 0\n" +
			"  sallyport uninstall --service sallyport-system/sallyport --all --dry-run\n" +
			"  sallyport uninstall --service sallyport-system/sallyport --all --yes",
		Flags: authorityFlags(),
		Also:  deployment.RemoveDerived,
	})
}
