// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/cmd/internal/install/deployment"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/application"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
)

func newManifestsCommand() *cobra.Command {
	o := deployment.Manifests{Server: serve.Default()}
	cmd := &cobra.Command{
		Use:   "manifests --service NAMESPACE/NAME | --url URL",
		Short: "Print manifests to install: CRDs, RBAC, flow control, the server, webhook configurations",
		Long: "Print YAML for kubectl apply, derived from the definitions that serve uses. Pass the flags of serve: the\n" +
			"printed RBAC grants what such a server needs.\n\n" +
			"A server that registers itself (serve --registration API, the default) needs --part\n" +
			"crd,rbac,user-roles,flowcontrol; it writes the webhook configurations when it is ready. Print them for\n" +
			"--registration None, and apply them once the server is up: if the server of a webhook configuration does\n" +
			"not respond, no pods can be created.",
		Example: "  # everything for a server in a cluster that registers itself\n" +
			"  sallyport manifests --service sallyport-system/sallyport --part namespace,crd,rbac,user-roles,flowcontrol,workload \\\n" +
			"    --image registry.example.com/sallyport:v1 | kubectl apply -f -\n\n" +
			"  # for a running server that registers itself\n" +
			"  sallyport manifests --service sallyport-system/webhooks --part crd,rbac,user-roles,flowcontrol | kubectl apply -f -\n\n" +
			"  # once a server with --registration None is up\n" +
			"  sallyport manifests --service sallyport-system/webhooks --part configurations --ca-file ca.crt | kubectl apply -f -",
		Args: cli.NoArguments("choose the objects to print with --part"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := serve.Load(o.ConfigFile, setting.GivenTo(cmd.Flags()), serve.OfDeployment...)
			if config == nil {
				return err
			}
			o.Server, o.Given = config, setting.GivenTo(cmd.Flags())
			if err := errors.Join(err, o.Validate()); err != nil {
				return err
			}
			objects, err := o.Objects()
			if err != nil {
				return err
			}
			return cli.PrintYAML(cmd.OutOrStdout(), objects)
		},
	}
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Output", func() {
		flags.StringSliceVar(&o.Parts, "part", deployment.DefaultParts, "`parts` to print, of "+strings.Join(deployment.AllParts, ", ")+"; may be repeated")
		cli.CompleteChoices(cmd, "part", deployment.AllParts)
	})
	cli.AddFlagGroup(cmd, "Server", func() {
		addConfigFlag(cmd, &o.ConfigFile)
		addServerFlags(cmd, o.Server, "service", "url")
		flags.StringVar(&o.ServiceAccount, "service-account", "sallyport", "`name` of the server's service account, in the namespace of --service")
		addServerFlags(cmd, o.Server, "registration", "owner", "certificate-source", "authority-secret", "leader-elect", "webhooks", "controllers")
	})
	cli.AddFlagGroup(cmd, "Workload", func() { addWorkloadFlags(flags, &o.Workload) })
	cli.AddFlagGroup(cmd, "Callers", func() {
		addServerFlags(cmd, o.Server, "authentication", "metrics-authentication")
		addCallersFlags(flags, &o.Callers)
	})
	cli.AddFlagGroup(cmd, "Webhook configurations", func() {
		addServerFlags(cmd, o.Server, "configuration-name", "namespace-selector", "failure-policy")
		flags.StringVar(&o.CAFile, "ca-file", "", "`file` with the PEM-encoded CA bundle for the caBundle; empty if something else writes it")
		cli.CompleteFiles(cmd, "ca-file")
		application.AddExtraFlags(flags, &o.Extra, "the webhook configurations")
		flags.BoolVar(&o.Static, "static", false,
			"print static admission manifests, which kube-apiserver reads from files; requires --url and --part configurations")
	})
	return cmd
}

// addCallersFlags adds the flags of the NetworkPolicy.
func addCallersFlags(flags *pflag.FlagSet, c *deployment.Callers) {
	flags.BoolVar(&c.NetworkPolicy, "network-policy", true,
		"print a NetworkPolicy with --part workload, or with any other part if this flag is set")
	flags.StringSliceVar(&c.CIDRs, "api-server-cidrs", nil,
		"in the NetworkPolicy: `addresses` of the API servers, for example 10.0.0.1/32; may be repeated; if empty, any address may call the webhooks")
	flags.StringVar(&c.MetricsFrom, "metrics-from", "kubernetes.io/metadata.name=monitoring",
		"in the NetworkPolicy: label `selector` of the namespaces whose pods may read metrics; empty for none")
	flags.StringVar(&c.PodSelector, "pod-selector", "",
		"in the NetworkPolicy: label `selector` of the server's pods; defaults to the pods of --part workload")
}

// addWorkloadFlags adds the flags of the Deployment.
func addWorkloadFlags(flags *pflag.FlagSet, w *deployment.Workload) {
	flags.StringVar(&w.Image, "image", "", "with --part workload: the `image` of the server")
	flags.Int32Var(&w.Replicas, "replicas", 2, "with --part workload: `number` of replicas")
	flags.Int32Var(&w.SecurePort, "secure-port", 8443,
		"with --part workload: `port` to serve webhooks on with TLS, in the container; control planes outside the cluster's network reach few other ports without a firewall rule")
	flags.StringVar(&w.PriorityClass, "priority-class", "system-cluster-critical",
		"with --part workload: `name` of the pods' priority class; set it to empty if a quota forbids the class; empty by default if the failure policy is Ignore, since nothing then waits for a server")
	flags.StringVar(&w.TLSSecret, "tls-secret", "",
		"with --part workload and --certificate-source Files: `name` of the Secret with tls.crt, tls.key and ca.crt")
}

func newUninstallCommand() *cobra.Command {
	return application.Uninstall(application.Uninstaller{
		Long: "Remove the backstop policy of PodDefault injection with its parameters, reports about PodDefaults, and the\n" +
			"webhook configurations that a server wrote: its own webhooks only, or the whole objects if they contain\n" +
			"no others. With --static-manifests-dir, remove the static manifests instead.\n\n" +
			"A running server would write them again, so scale it down first: nothing is removed while a server holds\n" +
			"the lease of its authority. Remove the output of 'sallyport manifests' with kubectl delete, but only\n" +
			"afterwards: a policy whose CustomResourceDefinition is gone rejects every pod.",
		Example: "  kubectl --namespace sallyport-system scale deployment sallyport --replicas 0\n" +
			"  sallyport uninstall --service sallyport-system/sallyport --all --dry-run\n" +
			"  sallyport uninstall --service sallyport-system/sallyport --all --yes",
		Flags: authorityFlags(),
		Also:  deployment.RemoveDerived,
	})
}
