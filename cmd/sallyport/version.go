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

// programVersion is what version prints.
type programVersion struct {
	// Version is the release, or the version in Go's build info.
	Version   string `json:"version"`
	GoVersion string `json:"goVersion"`
	// Platform is OS/ARCHITECTURE.
	Platform string `json:"platform"`
}

func newVersionCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of sallyport",
		Example: "  sallyport version\n" +
			"  sallyport version -o json",
		Args: cli.NoArguments("omit it"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Choice("output", output, cli.TextOrJSON); err != nil {
				return err
			}
			if output != "text" {
				return cli.PrintAs(cmd.OutOrStdout(), output, programVersion{buildVersion(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s version %s\n", cmd.Root().DisplayName(), versionText())
			return err
		},
	}
	cli.AddOutputFlag(cmd, &output, cli.TextOrJSON)
	return cmd
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
