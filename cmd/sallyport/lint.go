// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/commands"
)

func newLintCommand() *cobra.Command {
	return commands.Lint(commands.Linter{Name: "sallyport", Flags: clusterFlags(), Webhooks: builtinWebhooks()})
}
