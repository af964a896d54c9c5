// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/application"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/hosting/logging"
	"github.com/sallyport-io/sallyport/internal/hosting/memory"
)

// Command returns a command that runs the application until SIGTERM or an interrupt. It
// then keeps answering while its endpoint is removed; a second signal ends it
// immediately. It only has flags for what is registered: for webhooks, for controllers
// and, with both, --webhooks and --controllers, so that one binary serves as one
// process or as two. Its command manifests prints what to install, uninstall removes
// what the application registered, and config checks flags. Pass it to [Execute], or add
// it to your own command.
func (a *App) Command() *cobra.Command {
	s := newCommandSettings(a)
	cmd := &cobra.Command{
		Use:          a.name,
		Short:        "Run the " + a.name,
		Args:         cli.NoArguments("use flags"),
		SilenceUsage: true,
		Version:      a.version,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := s.validate(a); err != nil {
			return setting.ByFlags(cmd.Flags(), err)
		}
		s.Logger = s.Log.Logger(cmd.ErrOrStderr())
		return setting.ByFlags(cmd.Flags(), a.RunUntilSignal(cmd.Context(), s.Settings))
	}
	cmd.SetUsageFunc(cli.PrintUsage)
	a.addFlags(cmd, s, true)
	cmd.AddCommand(application.Config(a.installation()))
	if len(a.webhooks)+len(a.converters)+len(a.components) > 0 {
		described, _ := a.installation()
		cmd.AddCommand(application.Manifests(a.installation()), application.UninstallOf(described))
	}
	if len(a.converters) > 0 {
		cmd.AddCommand(a.checkConversions(a.name, clusterflags.Flags{UserAgent: a.name + "/" + a.version}, a.converters))
	}
	return cmd
}

// Execute runs a command and returns the exit status for [os.Exit]: 0 without an error, 1
// with one, which it prints, or what the help of the command says.
func Execute(cmd *cobra.Command) int {
	return cli.Execute(context.Background(), cmd, func(err error) { cmd.PrintErrln(cmd.ErrPrefix(), err) })
}

// commandSettings are the settings of a command.
type commandSettings struct {
	Settings `json:",inline"`
	Log      logging.Settings `json:"log"`
}

func newCommandSettings(a *App) *commandSettings {
	return &commandSettings{a.DefaultSettings(), logging.DefaultSettings()}
}

func (s *commandSettings) validate(a *App) error {
	return errors.Join(setting.Join(tags.Validate(&s.Log, field.NewPath("log"))), a.Validate(s.Settings))
}

// addFlags adds the flags of what the application consists of. Commands that call no API server need
// no kubeconfig.
func (a *App) addFlags(cmd *cobra.Command, s *commandSettings, kubeconfig bool) {
	cmd.Flags().SortFlags = false
	serves, controls := len(a.webhooks)+len(a.converters)+len(a.components) > 0, len(a.controllers) > 0
	has := func(f setting.Flag) bool {
		section, _, _ := strings.Cut(f.Field, ".")
		switch {
		case f.Name == "leader-election-namespace":
			return controls
		case f.Name == "conversion-service":
			return len(a.converters) > 0
		case section == "kubeconfig":
			return kubeconfig
		case f.Name == "metrics-bind-address", section == "log", section == "leaderElection":
			return true
		case section == "webhooks", section == "controllers":
			return serves && controls
		}
		return serves
	}
	group := ""
	for _, f := range hosting.Flags(s, a.name, a.authenticationNames()) {
		switch {
		case f.Group != "":
			group = f.Group
		case strings.HasPrefix(f.Field, "serving."):
			group = "TLS, timeouts and limits"
		}
		if has(f) {
			cli.AddFlagGroup(cmd, group, func() { setting.Bind(cmd, s, f) })
		}
	}
}

// RunUntilSignal is [App.Run] until SIGTERM or an interrupt, for a process of its own.
// After the first signal, the next one has its default effect and ends the process
// immediately. Garbage is collected less often than by default, and the memory limit is
// the container's, unless GOGC and GOMEMLIMIT say otherwise.
func (a *App) RunUntilSignal(ctx context.Context, s Settings) error {
	defer memory.Manage()()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return a.Run(ctx, s)
}
