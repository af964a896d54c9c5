// SPDX-License-Identifier: Apache-2.0

// Package commands adds commands to an application's that run its webhooks on files, and that look
// at what it prints and at clusters. They are not part of [sallyport.App.Command], because they
// add 30 MB to a program, above all for Kubernetes' CEL and its checks of fields:
//
//	cmd := app.Command()
//	commands.AddTo(cmd, app)
//	os.Exit(sallyport.Execute(cmd))
//
// [sallyport.Execute] returns the exit statuses that the help of the commands promises: 2 if lint
// or doctor find something, 3 if review denies an object.
//
// Experimental: its identifiers may change in any minor release, see docs/compatibility.md.
package commands

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/commands"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/install"
)

// AddTo adds to the command of an application:
//
//   - review, which runs its webhooks on the objects of files and shows what becomes of them;
//     it fails if one is denied, and handlers that read from a cluster fail.
//   - doctor, which checks an installation from outside and says what to do; it fails if something has
//     to be fixed. An application that has no command manifests, as it serves nothing, gets none.
//   - lint, which reports problems of webhook configurations in files, such as those that the
//     command manifests prints, or in a cluster; it fails if there are findings.
func AddTo(cmd *cobra.Command, app *sallyport.App) {
	name, webhooks := cmd.Name(), app.Webhooks()
	flags := clusterflags.Flags{UserAgent: name + "/" + cmd.Version}
	cmd.AddCommand(
		commands.Review(commands.Reviewer{
			Name: name, Names: commands.WebhookNames(webhooks),
			Review: func(run *review.Run) {
				run.Webhooks = func(review.Sources) ([]admission.Webhook, error) { return webhooks, nil }
			},
		}),
		commands.Lint(commands.Linter{Name: name, Flags: flags, Webhooks: webhooks}),
	)
	if of := app.Command(); hasManifests(of) {
		cmd.AddCommand(doctorOf(app, of.Name(), name, flags))
	}
}

// doctorOf is the command doctor of an application, for a program that may have another name.
func doctorOf(app *sallyport.App, application, program string, flags clusterflags.Flags) *cobra.Command {
	var given []string
	settings := app.DefaultSettings()
	cmd := commands.Doctor(
		clusterflags.AuthorityFlags{Flags: flags, AuthoritySettings: clusterflags.AuthoritySettings{Registration: settings.Registration, Certificate: settings.Certificate}},
		doctor.Options{
			Program: program, Serve: program, Discloses: "its changes", ServiceAccount: application, Leases: install.Leases(application),
			Rights: func(of *doctor.Installation) ([]runtime.Object, error) { return rights(app.Command(), of, given) },
		},
	)
	cli.AddFlagGroup(cmd, "Rights", func() {
		cmd.Flags().StringArrayVar(&given, "server-flag", nil,
			"`flag` of the server that decides which rights it needs, for example --leader-elect=false; may be repeated")
	})
	return cmd
}
