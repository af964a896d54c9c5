// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// version is set by the linker in releases.
var version = ""

// programVersion is what version prints.
type programVersion struct {
	// Version is the release, or the version in Go's build info.
	Version string `json:"version"`
	// Commit is that of a release's source; empty for a build of the module, which has a version only.
	Commit string `json:"commit,omitempty"`
	// Kubernetes is the release whose libraries it contains.
	Kubernetes string `json:"kubernetes"`
	GoVersion  string `json:"goVersion"`
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
				return cli.PrintAs(cmd.OutOrStdout(), output, newProgramVersion())
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s version %s\n", cmd.Root().DisplayName(), versionText())
			return err
		},
	}
	cli.AddOutputFlag(cmd, &output, cli.TextOrJSON)
	return cmd
}

func newProgramVersion() programVersion {
	out := programVersion{Version: buildVersion(), GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			out.Commit = setting.Value
		}
	}
	for _, dep := range info.Deps {
		if dep.Path == "k8s.io/apimachinery" { // v0.37.2 is that of Kubernetes 1.37.2
			out.Kubernetes = strings.Replace(dep.Version, "v0.", "v1.", 1)
		}
	}
	return out
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
