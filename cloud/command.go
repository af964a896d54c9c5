// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
)

// Command is app.NewCloudControllerManagerCommand with the webhooks of the registry. It has
// the same parameters; the controllers are added to those of the registry. It takes over
// the webhook options of opts. The cloud initializer is called once for the controllers
// and, if webhooks are served, once more for them.
//
// Without webhooks in the registry it is that command, without flags that would have no
// effect; without controllers it serves all webhooks that are on by default.
func (r *Registry) Command(opts *options.CloudControllerManagerOptions, initializer app.InitCloudFunc,
	controllers map[string]app.ControllerInitFuncConstructor, aliases map[string]string, fss cliflag.NamedFlagSets, stop <-chan struct{},
) (*cobra.Command, error) {
	all, allAliases, err := r.withControllers(controllers, aliases)
	if err != nil {
		return nil, err
	}
	c, err := r.newCommand(opts, initializer, stop, len(all) > 0)
	if err != nil {
		return nil, err
	}
	if len(all) > 0 {
		c.addLabelController(func(name string, constructor app.ControllerInitFuncConstructor) { all[name] = constructor })
	}
	flags := c.flags(fss)
	return c.wrap(app.NewCloudControllerManagerCommand(opts, c.initializeCloud, all, allAliases, flags, c.stop)), nil
}

// Build is BuildCommand of the builder with the webhooks of the registry; the builder has
// the controllers. Webhooks that the builder has are served too, by upstream's handlers, but
// not registered with the API server. It sets options, initializer, flags and stop channel: opts may be nil
// for the defaults, fss empty and stop nil.
func (r *Registry) Build(builder *app.CommandBuilder, opts *options.CloudControllerManagerOptions, initializer app.InitCloudFunc,
	fss cliflag.NamedFlagSets, stop <-chan struct{},
) (*cobra.Command, error) {
	if len(r.controllers) > 0 {
		return nil, errors.New("cloud: the builder has the controllers: register them there, or use Command")
	}
	if opts == nil {
		var err error
		if opts, err = options.NewCloudControllerManagerOptions(); err != nil {
			return nil, fmt.Errorf("cloud: %w", err)
		}
	}
	if err := r.registerOf(builder); err != nil {
		return nil, err
	}
	c, err := r.newCommand(opts, initializer, stop, true)
	if err != nil {
		return nil, err
	}
	c.addLabelController(func(name string, constructor app.ControllerInitFuncConstructor) {
		builder.RegisterController(name, constructor, nil)
	})
	builder.SetOptions(opts)
	builder.AddFlags(c.flags(fss))
	builder.SetCloudInitializer(c.initializeCloud)
	builder.SetStopChannel(c.stop)
	return c.wrap(builder.BuildCommand()), nil
}

func (r *Registry) withControllers(controllers map[string]app.ControllerInitFuncConstructor, aliases map[string]string) (
	map[string]app.ControllerInitFuncConstructor, map[string]string, error,
) {
	all, allAliases := maps.Clone(r.controllers), maps.Clone(r.aliases)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(controllers)) {
		if _, there := all[name]; there {
			errs = append(errs, fmt.Errorf("cloud: controller %q is registered and also passed to Command", name))
		}
		all[name] = controllers[name]
	}
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		if target, there := allAliases[alias]; there && target != aliases[alias] {
			errs = append(errs, fmt.Errorf("cloud: %q is an alias of the controllers %q and %q", alias, target, aliases[alias]))
		}
		allAliases[alias] = aliases[alias]
	}
	return all, allAliases, errors.Join(errs...)
}

// command is what the command of a registry needs when it runs.
type command struct {
	registry   *Registry
	options    *options.CloudControllerManagerOptions
	settings   *settings
	initialize app.InitCloudFunc
	controls   bool // there are controllers
	parent     <-chan struct{}
	stop       chan struct{} // ends the controllers
	// beside serves webhooks beside controllers; nil if none are to be served.
	beside func(*config.CompletedConfig) error
}

func (r *Registry) newCommand(opts *options.CloudControllerManagerOptions, initializer app.InitCloudFunc, stop <-chan struct{}, controls bool) (*command, error) {
	var errs []error
	if r.made {
		errs = append(errs, errors.New("the registry has already made a command"))
	}
	if opts == nil {
		errs = append(errs, errors.New("options are required"))
	}
	if initializer == nil {
		errs = append(errs, errors.New("a cloud initializer is required"))
	}
	if !controls && len(r.webhooks) == 0 {
		errs = append(errs, errors.New("neither webhooks nor controllers are registered"))
	}
	if len(errs) == 0 {
		errs = append(errs, addGate())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("cloud: %w", err)
	}
	r.made = true
	return &command{
		registry: r, options: opts, settings: takeSettings(opts), initialize: initializer, controls: controls,
		parent: stop, stop: make(chan struct{}),
	}, nil
}

// flags are the given flags and, if there are webhooks, their flags.
func (c *command) flags(given cliflag.NamedFlagSets) cliflag.NamedFlagSets {
	out := cliflag.NamedFlagSets{}
	for _, name := range given.Order {
		out.FlagSet(name).AddFlagSet(given.FlagSets[name])
	}
	if len(c.registry.webhooks) > 0 {
		c.settings.addFlags(&out, c.registry.webhooks, c.controls)
	}
	return out
}

// ofControllers are flags that have no effect without controllers.
var ofControllers = []string{
	"controllers", "leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period",
	"leader-elect-resource-lock", "leader-elect-resource-name", "leader-elect-resource-namespace", "secure-port",
}

func (c *command) wrap(made *cobra.Command) *cobra.Command {
	if !c.controls {
		for _, name := range ofControllers {
			if flag := made.Flags().Lookup(name); flag != nil {
				flag.Hidden = true
			}
		}
	}
	run := made.RunE
	made.RunE = func(cmd *cobra.Command, args []string) error {
		return setting.ByFlags(cmd.Flags(), c.run(cmd, args, run))
	}
	choices := map[string][]string{"persistentvolumelabel-controller": labelModes}
	for _, f := range c.settings.flags() {
		choices[f.Name] = f.Choices
	}
	for flag, choices := range choices {
		if made.Flags().Lookup(flag) != nil && len(choices) > 0 {
			cli.CompleteChoices(made, flag, choices)
		}
	}
	return made
}

// failure is how the cloud initializer, which has no other way, ends the command.
type failure struct{ error }

func (c *command) run(cmd *cobra.Command, args []string, upstream func(*cobra.Command, []string) error) (err error) {
	webhooks := c.settings.enabled(c.registry.webhooks, c.controls)
	if err := errors.Join(c.settings.validateSelection(c.registry.webhooks), cli.Choice("persistentvolumelabel-controller", c.settings.labels, labelModes)); err != nil {
		return err
	}
	if c.settings.print {
		return c.settings.printConfigurations(cmd.OutOrStdout(), webhooks)
	}
	alone := !c.controls || noControllers(c.options.Generic.Controllers)
	switch {
	case len(webhooks) > 0 && !gateOpen():
		const remedy = "webhooks are enabled, but not served: set --feature-gates=CloudControllerManagerWebhook=true"
		if alone {
			return errors.New(remedy)
		}
		klog.Warning(remedy)
		webhooks = nil
	case len(webhooks) > 0:
		if err := setting.Join(c.settings.validate(c.options)); err != nil {
			return err
		}
	case alone && len(c.registry.webhooks) > 0:
		return errors.New("neither --controllers nor --webhooks enables anything: there is nothing to run")
	}

	ctx, release := c.lifetime(cmd.Context(), len(webhooks) > 0)
	defer release()
	if ofUpstream := slices.ContainsFunc(webhooks, func(w *Webhook) bool { return w.upstream }); alone && ofUpstream {
		// Only upstream's command can call them. It has no controllers then, and no port of its own.
		c.options.Generic.Controllers, c.options.Generic.LeaderElection.LeaderElect, c.options.SecureServing.BindPort = nil, false, 0
	} else if alone && len(webhooks) > 0 {
		if err := applyLogging(cmd.Flags()); err != nil {
			return err
		}
		return c.runAlone(ctx, webhooks)
	}
	if len(webhooks) == 0 {
		context.AfterFunc(ctx, func() { close(c.stop) })
		return upstream(cmd, args)
	}
	return c.runBeside(ctx, webhooks, func() error { return upstream(cmd, args) })
}

// lifetime is the context of a run: it ends when the caller's stop channel is closed or, if
// webhooks are served and must drain, on SIGTERM or SIGINT. A second signal ends the
// process.
func (c *command) lifetime(ctx context.Context, serves bool) (context.Context, func()) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithCancel(ctx)
	release := cancel
	if serves {
		var unhook context.CancelFunc
		ctx, unhook = signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
		context.AfterFunc(ctx, unhook)
	}
	if c.parent != nil {
		done := ctx.Done()
		go func() {
			select {
			case <-c.parent:
				cancel()
			case <-done:
			}
		}()
	}
	return ctx, release
}

// runBeside runs the controllers together with the webhooks. The controllers run until the
// last call is answered, and stop if the webhooks fail.
func (c *command) runBeside(ctx context.Context, webhooks []*Webhook, controllers func() error) (err error) {
	ctx, end := context.WithCancel(ctx)
	stop := sync.OnceFunc(func() { close(c.stop) })
	opened, ended := false, make(chan error, 1)
	c.beside = func(completed *config.CompletedConfig) error {
		h, err := open(ctx, c.settings, webhooks, completed, c.initialize)
		if err != nil {
			return fmt.Errorf("webhooks: %w", err)
		}
		opened = true
		go func() {
			err := h.run(ctx)
			stop()
			ended <- err
		}()
		return nil
	}
	defer func() {
		if value := recover(); value != nil {
			failed, ours := value.(failure)
			if !ours {
				panic(value)
			}
			err = failed.error
		}
		end()
		if opened {
			err = errors.Join(err, <-ended)
		}
		stop()
	}()
	return controllers()
}

// initializeCloud is the cloud initializer for upstream. It is called when everything is
// configured and nothing runs yet.
func (c *command) initializeCloud(completed *config.CompletedConfig) cloudprovider.Interface {
	made := c.initialize(completed)
	if c.beside != nil {
		if err := c.beside(completed); err != nil {
			panic(failure{err})
		}
	}
	return made
}

// noControllers reports whether a selection enables no controllers at all.
func noControllers(selection []string) bool {
	return !slices.ContainsFunc(selection, func(entry string) bool { return entry != "" && !strings.HasPrefix(entry, "-") })
}
