// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/commands"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// defaultsOptions are the common options of commands that evaluate the PodDefaults of a
// cluster.
type defaultsOptions struct {
	clusterflags.Flags
	files      []string
	server     *serve.Config
	config     string
	validation string
	checker    *fieldcheck.Checker
	askServer  bool
}

func (o *defaultsOptions) addFlags(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Input", func() {
		flags.StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder with "+what+", YAML or JSON; - for stdin; may be repeated")
		cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
		commands.AddValidateFlag(cmd, &o.validation)
	})
	o.AddNamespacedFlags(cmd)
	cli.AddFlagGroup(cmd, "Server configuration", func() {
		addConfigFlag(cmd, &o.config)
	})
}

func (o *defaultsOptions) prepare(cmd *cobra.Command, args []string) error {
	o.checker = fieldcheck.New(o.validation, cmd.ErrOrStderr(), &fieldcheck.Definitions{})
	config, err := serve.Load(o.config, nil, serve.OfDeployment...)
	if config != nil {
		err = errors.Join(err, config.Select("poddefault"))
	}
	o.server = config
	return errors.Join(filesOrName(o.files, args), cli.Choice("validate", o.validation, fieldcheck.Modes), err)
}

// simulator evaluates the cluster's PodDefaults.
func (o *defaultsOptions) simulator(cmd *cobra.Command) (*injection.Simulator, error) {
	c, err := o.Open()
	if err != nil {
		return nil, err
	}
	return &injection.Simulator{Cluster: c, Checker: o.checker, Notes: cmd.ErrOrStderr(), Webhooks: func(source match.Source) ([]admission.Webhook, error) {
		return o.server.Define(serve.From(serve.PodDefaultSources{PodDefaults: source, Authors: serve.Anybody{}}))
	}}, nil
}

// addServerFlag adds the flag for what the API server itself would refuse.
func (o *defaultsOptions) addServerFlag(cmd *cobra.Command) {
	cli.AddFlagGroup(cmd, "Evaluation", func() {
		cmd.Flags().BoolVar(&o.askServer, "server", true, "ask the API server about the resulting pods, by dry runs with your rights; =false shows only what the PodDefaults do")
	})
}

// asking is simulator, which also asks the API server if the flag says so.
func (o *defaultsOptions) asking(cmd *cobra.Command) (*injection.Simulator, error) {
	simulator, err := o.simulator(cmd)
	if err != nil || !o.askServer {
		return simulator, err
	}
	server, err := dryrun.New(simulator.Cluster.Config, nil)
	simulator.Server = &dryrun.Pods{Server: server}
	return simulator, err
}

// deniedStatus returns the exit status for a denied object.
func deniedStatus(denied bool, err error) error {
	if err == nil && denied {
		return exitStatus(exitDenied)
	}
	return err
}

// objects returns the objects of the files, or the named one.
func (o *defaultsOptions) objects(cmd *cobra.Command, c *cluster.Cluster, args []string) ([]*manifest.Object, error) {
	if len(args) > 0 {
		one, err := c.Workload(cmd.Context(), args)
		if err != nil {
			return nil, err
		}
		return []*manifest.Object{one}, nil
	}
	return injection.ReadFiles(cmd.Context(), o.files, cmd.InOrStdin(), o.checker, "look at")
}

func newExplainCommand() *cobra.Command {
	o, text := defaultsOptions{Flags: clusterFlags()}, cli.Text{}
	cmd := &cobra.Command{
		Use:   "explain TYPE/NAME | -f FILE",
		Short: "Explain which PodDefaults apply to a pod, and which nodes its datasets select",
		Long: "For a pod or the pod template of a workload, show which PodDefaults and ClusterPodDefaults of the\n" +
			"cluster match, what each of them adds, which do not match and because of which label, and what\n" +
			"conflicts. Nothing is written. For a running pod, show what was applied when it was created; what each\n" +
			"PodDefault added is derived from the template of its owner and the current PodDefaults.\n\n" +
			"For a pod that is scheduled by its Fluid datasets, show which nodes they require or prefer, and why. Set\n" +
			"--config if the server's webhook dataset does not have its default settings.\n\n" +
			"The API server is asked about each pod by a dry run, with your rights: quotas, LimitRanges, classes,\n" +
			"ServiceAccounts, policies and its validation may refuse it. For a running pod, the question is whether its\n" +
			"replacement would be admitted now.",
		Example: "  sallyport explain pod/web-0\n\n" +
			"  sallyport explain deployment/web -n team-a\n\n" +
			"  # before it is created\n" +
			"  sallyport explain -f pod.yaml",
		Args:              cli.Arguments(0, 2, "TYPE/NAME, TYPE NAME, or -f FILE"),
		ValidArgsFunction: o.CompleteWorkloads,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			return errors.Join(o.prepare(cmd, args), text.Validate(cli.TextOrJSON))
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.explain(cmd, args, &text) },
	}
	o.addFlags(cmd, "pods or workloads")
	o.addServerFlag(cmd)
	text.AddFlags(cmd, cli.TextOrJSON)
	return cmd
}

func (o *defaultsOptions) explain(cmd *cobra.Command, args []string, text *cli.Text) error {
	simulator, err := o.asking(cmd)
	if err != nil {
		return err
	}
	objects, err := o.objects(cmd, simulator.Cluster, args)
	if err != nil {
		return err
	}
	unknown := 0
	denied, err := simulator.Explain(cmd.Context(), objects, *serve.Dataset(o.server), func(e *injection.Explanation) error {
		if e.Unknown != "" {
			unknown++
		}
		if text.Format != "text" {
			return e.PrintAs(cmd.OutOrStdout(), text.Format)
		}
		return e.PrintText(text.Screen(cmd))
	})
	if err == nil && !denied {
		err = injection.ErrUnknown(unknown)
	}
	return deniedStatus(denied, err)
}
