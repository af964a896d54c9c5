// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/serving/tracing"
)

// applicationName is what leases are named after.
const applicationName = "sallyport"

// lastSpans is how long it may take to send the last spans.
const lastSpans = 5 * time.Second

type serveOptions struct {
	settings    frontdoor.Settings
	log         frontdoor.LogSettings
	tracing     tracing.Settings
	webhooks    builtinSelection
	builtin     builtinSettings
	controllers controllerSelection
	config      string
	read        []byte // what the file held when it was read
	live        *liveConfig
	cmd         *cobra.Command // that was called
	// endpointLater is set if neither Service nor URL need be known yet.
	endpointLater bool
}

func newServeCommand() *cobra.Command {
	cmd, _, _ := newServe()
	return cmd
}

// newServe is the command with what its flags set. The application is nil if it
// cannot be made; the command then says why.
func newServe() (*cobra.Command, *serveOptions, *frontdoor.App) {
	o := &serveOptions{builtin: defaultBuiltinSettings()}
	cmd := &cobra.Command{
		Use:   "serve --service NAMESPACE/NAME | --url URL",
		Short: "Serve the webhooks to an API server",
		Long: "Serve answers the API server's admission reviews, keeps its own certificate, and registers\n" +
			"itself: the webhook configurations are written once it is ready, and kept true.\n\n" +
			"On SIGTERM it goes on answering while its endpoint is being taken out of service, and ends\n" +
			"when nobody is connected any more; a second signal ends it at once.",
		Example: "  # in a cluster, behind the Service webhooks in the namespace sallyport-system\n" +
			"  sallyport serve --service sallyport-system/webhooks\n\n" +
			"  # with two of the ready-made webhooks\n" +
			"  sallyport serve --service sallyport-system/webhooks --webhooks poddefault,imagepull\n\n" +
			"  # as a file says, see 'sallyport config'\n" +
			"  sallyport serve --config sallyport.yaml\n\n" +
			"  # beside an API server on this machine\n" +
			"  sallyport serve --kubeconfig ~/.kube/config --url https://127.0.0.1:9443 --bind-address 127.0.0.1\n\n" +
			"  # with a certificate of cert-manager, and configurations that somebody else writes\n" +
			"  sallyport serve --registration none --certificate-source files \\\n" +
			"    --tls-cert-file /certs/tls.crt --tls-private-key-file /certs/tls.key",
		Args: noArguments("everything is said by flags, and a file that --config names"),
	}
	app, err := o.app()
	if err != nil { // its name is a constant, and its webhooks come with the run
		cmd.RunE = func(*cobra.Command, []string) error { return err }
		return cmd, o, nil
	}
	o.cmd = cmd
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd, app) }
	o.settings = app.DefaultSettings()
	o.settings.Registration = registrationSettings()
	o.settings.Certificate = certificateSettings()
	o.settings.Authentication.PrivatePaths = frontdoor.PrivatePathsAuto
	flags := cmd.Flags()
	addFlagGroup(cmd, "Configuration", func() { addConfigFlag(cmd, &o.config) })
	addFlagGroup(cmd, "API server", func() {
		flags.StringVar(&o.settings.Kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server; empty for the service account of the pod")
		cli.CompleteFiles(cmd, "kubeconfig")
		o.settings.Registration.AddModeFlag(cmd)
		o.settings.Registration.AddDirectoryFlag(cmd)
		o.settings.Registration.AddOwnerFlag(cmd)
		o.settings.Registration.AddEndpointFlags(cmd)
	})
	addFlagGroup(cmd, "Webhook configurations", func() { o.settings.Registration.AddFlags(cmd) })
	addFlagGroup(cmd, "Certificate", func() { o.settings.Certificate.AddFlags(cmd) })
	addFlagGroup(cmd, "Leader election", func() { o.settings.LeaderElection.AddFlags(cmd) })
	addFlagGroup(cmd, "Callers", func() { app.AddAuthenticationFlags(cmd, &o.settings.Authentication) })
	addFlagGroup(cmd, "Ready-made webhooks", func() {
		o.webhooks.addFlag(cmd)
		addPodDefaultFlags(cmd, &o.builtin.podDefault.Settings)
		addAuthorFlag(cmd, &o.builtin.podDefault)
		addGuardFlag(cmd, &o.builtin.podDefault)
		addNarrowFlag(cmd, &o.builtin.podDefault)
		o.controllers.addFlag(cmd)
	})
	addFlagGroup(cmd, "Addresses, limits and draining", func() { o.settings.Serving.AddFlags(flags) })
	addFlagGroup(cmd, "Log", func() { o.log.AddFlags(cmd) })
	addFlagGroup(cmd, "Traces", func() { o.tracing.AddFlags(flags) })
	return cmd, o, app
}

// prepare reads the configuration and validates all settings. The error has every
// mistake, and its line if it is one of the file.
func (o *serveOptions) prepare(cmd *cobra.Command, app *frontdoor.App) error {
	o.settings.Registration.Adjust = o.builtin.adjust
	var config *configFile
	var errs []error
	if o.config != "" {
		var err error
		if config, err = readConfig(o.config); config == nil {
			return err
		}
		errs = append(errs, err, config.apply(cmd.Flags(), &o.webhooks, &o.builtin))
		o.read = config.data
	}
	settings := o.settings
	if o.endpointLater && settings.Registration.NoEndpoint() {
		settings.Registration.URL = "https://127.0.0.1" // any good one
	}
	err := errors.Join(o.log.Validate(), o.tracing.Validate(), o.webhooks.validate(), o.controllers.validate(), validateAuthorFlag(&o.builtin.podDefault),
		o.builtin.podDefault.validateNarrow(), validateGuard(&o.builtin.podDefault, settings.Registration.Mode, o.webhooks, o.controllers), app.Validate(settings))
	if errors.Join(errs...) == nil && err == nil {
		var webhooks []admission.Webhook
		if webhooks, err = o.webhooks.define(&o.builtin, noSources()); err == nil {
			_, err = o.settings.Registration.Apply(webhooks)
		}
	}
	return config.locate(errors.Join(append(errs, err)...))
}

// run serves until a signal ends it.
func (o *serveOptions) run(cmd *cobra.Command, app *frontdoor.App) error {
	if err := o.prepare(cmd, app); err != nil {
		return err
	}
	o.settings.Registration.Adjust = o.live.adjust
	o.settings.Logger = o.log.Logger(cmd.ErrOrStderr())
	tracer, shutdown, err := o.tracing.Start(cmd.Context(), applicationName, buildVersion(), o.settings.Logger)
	if err != nil {
		return err
	}
	o.settings.Serving.Tracer = tracer
	err = app.RunUntilSignal(cmd.Context(), o.settings)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), lastSpans)
	defer cancel()
	if late := shutdown(ctx); late != nil {
		o.settings.Logger.Warn("the last traces were not sent", "error", late)
	}
	return err
}

// app is what serve runs.
func (o *serveOptions) app() (*frontdoor.App, error) {
	options := []frontdoor.Option{
		frontdoor.WithVersion(buildVersion()),
		frontdoor.WithAuthentication(authenticationDelegated, delegatedAuthentication),
	}
	o.live = newLiveConfig(o)
	options = append(options, frontdoor.WithComponent(o.live.component))
	for _, b := range o.live.builtins {
		options = append(options, frontdoor.WithComponent(b.component))
	}
	for _, c := range controllers() {
		options = append(options, frontdoor.WithComponent(func(env frontdoor.Environment) (frontdoor.Component, error) {
			return c.component(o, env)
		}))
	}
	return frontdoor.New(applicationName, options...)
}
