// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/internal/cli"
)

// ReleaseFlag is the name of the flag for a release of Kubernetes.
const ReleaseFlag = "kubernetes-version"

// AddReleaseFlag adds the flag for the release of Kubernetes that something is checked or evaluated for, and its completion.
func AddReleaseFlag(cmd *cobra.Command, of *release.Version, what, without string) {
	cmd.Flags().Var(of, ReleaseFlag, "`version` of Kubernetes "+what+", such as 1.36.3; "+without)
	var known []string
	for minor := release.Newest; minor >= release.Oldest; minor-- {
		known = append(known, fmt.Sprintf("1.%d", minor))
	}
	cli.CompleteChoices(cmd, ReleaseFlag, known)
}
