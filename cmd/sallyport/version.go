// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// version is set by the linker in releases.
var version = ""

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of sallyport",
		Args:  noArguments("leave it out"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s version %s\n", cmd.Root().DisplayName(), versionText())
			return err
		},
	}
}

// versionText is what cobra prints for --version too, after the name of the program. A
// template of our own would find methods by name, and then the linker keeps every exported
// method of every type, a third of the program.
func versionText() string {
	return fmt.Sprintf("%s (%s, %s/%s)", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion is the release, or else what Go knows of the build.
func buildVersion() string {
	if version != "" {
		return version
	}
	return cli.BuildVersion()
}
