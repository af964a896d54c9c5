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
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

func versionText() string {
	return fmt.Sprintf("sallyport %s (%s, %s/%s)", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion is the release, or else what Go knows of the build.
func buildVersion() string {
	if version != "" {
		return version
	}
	return cli.BuildVersion()
}
