// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/hosting/logging"
	"github.com/sallyport-io/sallyport/internal/hosting/memory"
	"github.com/sallyport-io/sallyport/internal/install"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// Command returns a command that runs the application until SIGTERM or an interrupt. It
// then keeps answering while its endpoint is removed; a second signal ends it
// immediately. It only has flags for what is registered: for webhooks, for controllers
// and, with both, --webhooks and --controllers, so that one binary serves as one
// process or as two. Its command manifests prints what to install, uninstall removes
// what the application registered, and config checks flags. Pass it to [Execute], or add
// it to your own command.
func (a *App) Command() *cobra.Command {
	s := a.DefaultSettings()
	var log logging.Settings
	cmd := &cobra.Command{
		Use:          a.name,
		Short:        "Run the " + a.name,
		Args:         cli.NoArguments("use flags"),
		SilenceUsage: true,
		Version:      a.version,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := errors.Join(log.Validate(), a.Validate(s)); err != nil {
			return hosting.ByFlags(err)
		}
		s.Logger = log.Logger(cmd.ErrOrStderr())
		return hosting.ByFlags(a.RunUntilSignal(cmd.Context(), s))
	}
	cmd.Flags().StringVar(&s.Kubeconfig, "kubeconfig", s.Kubeconfig, "path of the kubeconfig `file`; empty for the service account of the pod")
	cli.CompleteFiles(cmd, "kubeconfig")
	a.addFlags(cmd, &s)
	log.AddFlags(cmd)
	cmd.AddCommand(install.ConfigCommand(a.installation()))
	if len(a.webhooks)+len(a.converters)+len(a.components) > 0 {
		cmd.AddCommand(install.Command(a.installation()), install.UninstallOf(a.installation()))
	}
	if len(a.converters) > 0 {
		cmd.AddCommand(a.checkConversions(a.name, cluster.Flags{UserAgent: a.name + "/" + a.version}, a.converters))
	}
	return cmd
}

// Execute runs a command and returns the exit status for [os.Exit]: 0 without an error, 1
// with one, which it prints, or what the help of the command says.
func Execute(cmd *cobra.Command) int {
	return cli.Execute(context.Background(), cmd, func(err error) { cmd.PrintErrln(cmd.ErrPrefix(), err) })
}

func (a *App) addFlags(cmd *cobra.Command, s *Settings) {
	flags := cmd.Flags()
	flags.SortFlags = false
	serves, controls := len(a.webhooks)+len(a.converters)+len(a.components) > 0, len(a.controllers) > 0
	if serves && controls {
		flags.StringSliceVar(&s.Webhooks, "webhooks", s.Webhooks,
			"`names` of the webhooks to serve: foo serves foo, -foo does not, * serves all that are not named; empty for none")
		flags.StringSliceVar(&s.Controllers, "controllers", s.Controllers,
			"`names` of the controllers to run: foo runs foo, -foo does not, * runs all that are not named; empty for none")
	}
	if serves {
		s.Registration.AddModeFlag(cmd)
		s.Registration.AddDirectoryFlag(cmd)
		s.Registration.AddOwnerFlag(cmd)
		s.Registration.AddEndpointFlags(cmd)
		if len(a.converters) > 0 {
			s.Registration.AddConversionFlag(cmd)
		}
		s.Registration.AddFlags(cmd)
		s.Certificate.AddFlags(cmd)
		s.Authentication.AddFlags(cmd, a.authenticationNames())
		s.Serving.AddFlags(flags)
		cli.CompleteChoices(cmd, "tls-min-version", cliflag.TLSPossibleVersions())
		cli.CompleteChoices(cmd, "tls-cipher-suites", cliflag.PreferredTLSCipherNames())
	}
	s.LeaderElection.AddFlags(cmd)
	if controls {
		if !serves {
			flags.StringVar(&s.Serving.MetricsBindAddress, "metrics-bind-address", s.Serving.MetricsBindAddress,
				"`host:port` to serve /metrics, /livez and /readyz on without TLS; 0 switches it off")
		}
		s.LeaderElection.AddNamespaceFlag(cmd)
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
