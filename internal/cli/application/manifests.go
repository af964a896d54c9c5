// SPDX-License-Identifier: Apache-2.0

// Package application has the commands of every application: manifests, uninstall, config and convert.
package application

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/install"
)

// Manifests returns the command manifests of an application, whose server has the flags that addFlags adds.
func Manifests(a install.Application, addFlags func(*cobra.Command)) *cobra.Command {
	m := install.Manifests{Application: a, Resources: install.NewResources()}
	parts, usual := a.Parts()
	cmd := &cobra.Command{
		Use:   "manifests --service NAMESPACE/NAME | --url URL",
		Short: "Print manifests to install in a cluster: " + strings.Join(parts, ", "),
		Long: "Manifests prints YAML for kubectl apply, derived from the server's own definitions. Pass the flags of the\n" +
			"server: the permissions are those that a server with these flags needs, and the containers of\n" +
			"--part workload get the same flags.\n\n" +
			"A server that registers itself (--registration API, the default) writes the webhook configurations and\n" +
			"conversion stanzas when it is ready, and needs only the other parts. Print them for --registration None.",
		Example: "  # everything for a server that registers itself in the cluster\n" +
			"  " + a.Name + " manifests --service " + a.Name + "-system/" + a.Name + " --part " + strings.Join(parts[:len(parts)-1], ",") + " \\\n" +
			"    --image registry.example.com/" + a.Name + ":v1 | kubectl apply -f -\n\n" +
			"  # only the permissions, for your own Deployment\n" +
			"  " + a.Name + " manifests --service " + a.Name + "-system/" + a.Name + " --part rbac",
		Args:         cli.NoArguments("choose the parts with --part"),
		SilenceUsage: true,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&m.Parts, "part", usual, "`parts` to print, of "+strings.Join(parts, ", ")+"; may be repeated")
	cli.CompleteChoices(cmd, "part", parts)
	flags.StringVar(&m.ServiceAccount, "service-account", a.Name, "`name` of the server's service account, in the namespace of --service")
	flags.StringVar(&m.CAFile, "ca-file", "", "`file` with the CA certificates for the caBundle, PEM; empty to leave the caBundle to another component, such as cert-manager")
	cli.CompleteFiles(cmd, "ca-file")
	AddExtraFlags(flags, &m.Extra, "the webhook configurations and CustomResourceDefinitions")
	addWorkloadFlags(flags, &m)
	own := map[string]bool{}
	flags.VisitAll(func(flag *pflag.Flag) { own[flag.Name] = true })
	addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := m.Validate(); err != nil {
			return setting.ByFlags(flags, err)
		}
		m.Args = cli.Given(flags, func(flag *pflag.Flag) bool { return !own[flag.Name] })
		objects, err := m.Objects()
		if err != nil {
			return err
		}
		return cli.PrintYAML(cmd.OutOrStdout(), objects)
	}
	return cmd
}

func addWorkloadFlags(flags *pflag.FlagSet, m *install.Manifests) {
	flags.StringVar(&m.Workload.Image, "image", "", "with --part workload: the `image` of the server, whose entry point is this program")
	flags.Int32Var(&m.Workload.Replicas, "replicas", 2, "with --part workload: `number` of servers")
	flags.StringVar(&m.Workload.PriorityClass, "priority-class", "",
		"with --part workload: `name` of the pods' priority class, for example system-cluster-critical if the cluster depends on these webhooks; empty for none")
	flags.StringVar(&m.Workload.TLSSecret, "tls-secret", "",
		"with --part workload and --certificate-source Files: `name` of the Secret with tls.crt, tls.key and ca.crt")
	flags.Var(&m.Resources.CPU, "cpu-request", "with --part workload: `quantity` of CPU that a server requests")
	flags.Var(&m.Resources.Memory, "memory-request", "with --part workload: `quantity` of memory that a server requests")
	flags.Var(&m.Resources.MemoryLimit, "memory-limit", "with --part workload: `quantity` of memory that a server may use; caches of controllers are in it")
}

// AddExtraFlags adds the flags of annotations and labels. Their help names objects as the objects that get them.
func AddExtraFlags(flags *pflag.FlagSet, e *install.Extra, objects string) {
	flags.StringToStringVar(&e.Annotations, "annotation", nil,
		"`key=value` for the annotations of "+objects+", for example cert-manager.io/inject-ca-from=NAMESPACE/CERTIFICATE; may be repeated")
	flags.StringToStringVar(&e.Labels, "label", nil, "`key=value` for the labels of "+objects+"; may be repeated")
}
