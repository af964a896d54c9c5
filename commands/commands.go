// SPDX-License-Identifier: Apache-2.0

// Package commands adds commands to an application's that run its webhooks on files, and that look
// at what it prints and at clusters. They are not part of [sallyport.App.Command], because they
// add 30 MB to a program, above all for Kubernetes' CEL and its checks of fields:
//
//	cmd := app.Command()
//	commands.AddTo(cmd, app)
//
// Experimental: its identifiers may change in any minor release, see docs/compatibility.md.
package commands

import (
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/commands"
	"github.com/sallyport-io/sallyport/internal/replay/review"
)

// AddTo adds to the command of an application:
//
//   - review, which runs its webhooks on the objects of files and shows what becomes of them;
//     it fails if one is denied, and handlers that read from a cluster fail.
//   - lint, which reports problems of webhook configurations in files, such as those that the
//     command manifests prints, or in a cluster; it fails if there are findings.
func AddTo(cmd *cobra.Command, app *sallyport.App) {
	name, webhooks := cmd.Name(), app.Webhooks()
	cmd.AddCommand(
		commands.Review(commands.Reviewer{
			Name: name, Names: commands.WebhookNames(webhooks),
			Review: func(run *review.Run) {
				run.Webhooks = func(review.Sources) ([]admission.Webhook, error) { return webhooks, nil }
			},
		}),
		commands.Lint(commands.Linter{Name: name, Flags: cluster.Flags{UserAgent: name + "/" + cmd.Version}, Webhooks: webhooks}),
	)
}
