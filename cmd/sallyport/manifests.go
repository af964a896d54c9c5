// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/cmd/internal/install/deployment"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// The values of --mode: who injects PodDefaults.
const (
	modeWebhook = "webhook"
	modePolicy  = "policy"
)

var manifestModes = []string{modeWebhook, modePolicy}

// policyFlags are the flags that --mode policy uses. The others configure a server.
var policyFlags = []string{"mode", "filename", "config"}

type manifestsOptions struct {
	deployment.Manifests
	mode  string
	files []string
}

func newManifestsCommand() *cobra.Command {
	o := manifestsOptions{Manifests: deployment.Manifests{Server: serve.Default()}}
	cmd := &cobra.Command{
		Use:   "manifests --service NAMESPACE/NAME | --url URL | --mode policy -f FILE",
		Short: "Print manifests to install: CRDs, RBAC, flow control, the server, webhook configurations",
		Long: "Print YAML for kubectl apply, derived from the definitions that serve uses. Pass the flags of serve: the\n" +
			"printed RBAC grants what such a server needs.\n\n" +
			"A server that registers itself (serve --registration API, the default) needs --part\n" +
			"crd,rbac,user-roles,flowcontrol; it writes the webhook configurations when it is ready. Print them for\n" +
			"--registration None, and apply them once the server is up: if the server of a webhook configuration does\n" +
			"not respond, no pods can be created.\n\n" +
			"With --mode policy, print the PodDefaults of files as policies that the API server of Kubernetes 1.36 or\n" +
			"later evaluates itself, instead of a server. Comments list their limitations. A PodDefault that would\n" +
			"silently behave differently than with the webhook is an error.",
		Example: "  # everything for a server in a cluster that registers itself\n" +
			"  sallyport manifests --service sallyport-system/sallyport --part namespace,crd,rbac,user-roles,flowcontrol,workload \\\n" +
			"    --image registry.example.com/sallyport:v1 | kubectl apply -f -\n\n" +
			"  # for a running server that registers itself\n" +
			"  sallyport manifests --service sallyport-system/webhooks --part crd,rbac,user-roles,flowcontrol | kubectl apply -f -\n\n" +
			"  # once a server with --registration None is up\n" +
			"  sallyport manifests --service sallyport-system/webhooks --part configurations --ca-file ca.crt | kubectl apply -f -\n\n" +
			"  # injection by the API server itself\n" +
			"  kubectl get poddefaults -A -o yaml | sallyport manifests --mode policy -f - | kubectl apply -f -",
		Args: cli.NoArguments("choose the objects to print with --part"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := serve.Load(o.ConfigFile, cmd.Flags(), serve.OfDeployment...)
			if config == nil {
				return err
			}
			o.Server, o.Given = config, cmd.Flags()
			switch o.mode {
			case modeWebhook:
				return o.run(cmd, err)
			case modePolicy:
				return o.policies(cmd, err)
			}
			return errors.Join(err, cli.Choice("mode", o.mode, manifestModes))
		},
	}
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Output", func() {
		flags.StringSliceVar(&o.Parts, "part", deployment.DefaultParts, "`parts` to print, of "+strings.Join(deployment.AllParts, ", ")+"; may be repeated")
		cli.CompleteChoices(cmd, "part", deployment.AllParts)
		o.addModeFlags(cmd)
	})
	cli.AddFlagGroup(cmd, "Server", func() {
		addConfigFlag(cmd, &o.ConfigFile)
		addServerFlags(cmd, o.Server, "service", "url")
		flags.StringVar(&o.ServiceAccount, "service-account", "sallyport", "`name` of the server's service account, in the namespace of --service")
		addServerFlags(cmd, o.Server, "registration", "owner", "certificate-source", "authority-secret", "leader-elect", "webhooks", "controllers")
	})
	cli.AddFlagGroup(cmd, "Workload", func() { o.Workload.AddFlags(flags) })
	cli.AddFlagGroup(cmd, "Callers", func() {
		addServerFlags(cmd, o.Server, "authentication", "metrics-authentication")
		o.Callers.AddFlags(flags)
	})
	cli.AddFlagGroup(cmd, "Webhook configurations", func() {
		addServerFlags(cmd, o.Server, "configuration-name", "namespace-selector", "failure-policy")
		flags.StringVar(&o.CAFile, "ca-file", "", "`file` with the PEM-encoded CA bundle for the caBundle; empty if something else writes it")
		cli.CompleteFiles(cmd, "ca-file")
		o.Extra.AddFlags(flags, "the webhook configurations")
		flags.BoolVar(&o.Static, "static", false,
			"print static admission manifests, which kube-apiserver reads from files; requires --url and --part configurations")
	})
	return cmd
}

func (o *manifestsOptions) addModeFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.mode, "mode", modeWebhook, "how PodDefaults are injected: by a server (webhook), or by the API server with the printed policies (policy)")
	flags.StringArrayVarP(&o.files, "filename", "f", nil,
		"`file` or folder with the PodDefaults for --mode policy, YAML or JSON; - for stdin; may be repeated")
	cli.CompleteChoices(cmd, "mode", manifestModes)
	cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
}

// run prints the objects of a server, unless its configuration has problems.
func (o *manifestsOptions) run(cmd *cobra.Command, problems error) error {
	if len(o.files) > 0 {
		problems = errors.Join(problems, errors.New("-f requires --mode policy: a server reads PodDefaults from the cluster"))
	}
	if err := errors.Join(problems, o.Validate()); err != nil {
		return err
	}
	objects, err := o.Objects()
	if err != nil {
		return err
	}
	return cli.PrintYAML(cmd.OutOrStdout(), objects)
}

// policies prints PodDefaults as policies, unless the configuration has problems.
func (o *manifestsOptions) policies(cmd *cobra.Command, problems error) error {
	errs := []error{problems}
	if len(o.files) == 0 {
		errs = append(errs, errors.New("--mode policy requires -f: pass a file with the PodDefaults, or - for stdin"))
	}
	errs = append(errs, manifest.StdinOnce(o.files))
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if cmd.LocalNonPersistentFlags().Lookup(flag.Name) != nil && !slices.Contains(policyFlags, flag.Name) {
			errs = append(errs, fmt.Errorf("--%s cannot be used with --mode policy, which has no server", flag.Name))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	exported, err := deployment.Policies(o.files, cmd.InOrStdin(), o.Server.Settings.PodDefault.Settings)
	if err != nil {
		return err
	}
	return deployment.PrintPolicies(cmd.OutOrStdout(), exported)
}
