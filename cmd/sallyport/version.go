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
		Args:  cli.NoArguments("omit it"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s version %s\n", cmd.Root().DisplayName(), versionText())
			return err
		},
	}
}

// versionText is also what cobra prints for --version, after the name of the program. A
// custom template would look up methods by name, which makes the linker keep every exported
// method of every type: a third of the program.
func versionText() string {
	return fmt.Sprintf("%s (%s, %s/%s)", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion is the release or, in other builds, the version in Go's build info.
func buildVersion() string {
	if version != "" {
		return version
	}
	return cli.BuildVersion()
}
