// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving/certificate"
)

// Application describes the application to install.
type Application struct {
	Name, Version string
	// Converters are all converters of the application.
	Converters []conversion.Converter
	CRDs       []*apiextensionsv1.CustomResourceDefinition
	// Rules are the permissions of webhooks and controllers, RulesIn their permissions in
	// single namespaces.
	Rules   []rbacv1.PolicyRule
	RulesIn map[string][]rbacv1.PolicyRule
	// Choose returns what the server runs with the settings. Its error reports every problem in
	// settings other than those below.
	Choose func() (Chosen, error)

	// Validate reports every problem in the settings. It does not use the network.
	Validate func() error
	// AddFlags adds the server's flags, which set these settings.
	AddFlags func(*cobra.Command)
	hosting.Settings
}

// Chosen describes what a server runs.
type Chosen struct {
	Webhooks   []admission.Webhook
	Converters []conversion.Converter
	// Controllers is set if there are controllers, Reads if the server reads objects before it
	// is ready, Unknown if some webhooks are known only at run time, Migrates if the server
	// migrates stored objects.
	Controllers, Reads, Unknown, Migrates bool
}

// The parts of an installation, in the order of their creation.
const (
	partNamespace      = "namespace"
	partCRD            = "crd"
	partRBAC           = "rbac"
	partService        = "service"
	partWorkload       = "workload"
	partConfigurations = "configurations"
)

// A manifestsCommand prints the objects to install.
type manifestsCommand struct {
	app            Application
	chosen         Chosen
	parts          []string
	serviceAccount string
	caFile         string
	extra          Extra
	workload       Workload
	resources      resources
	args           []string // of the server
}

// Command returns the command manifests of an application.
func Command(a Application) *cobra.Command {
	m := manifestsCommand{app: a, resources: newResources()}
	parts := []string{partNamespace, partRBAC, partService, partWorkload, partConfigurations}
	usual := []string{partRBAC, partConfigurations}
	if len(a.CRDs) > 0 {
		parts, usual = slices.Insert(parts, 1, partCRD), slices.Insert(usual, 0, partCRD)
	}
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
	flags.StringSliceVar(&m.parts, "part", usual, "`parts` to print, of "+strings.Join(parts, ", ")+"; may be repeated")
	cli.CompleteChoices(cmd, "part", parts)
	flags.StringVar(&m.serviceAccount, "service-account", a.Name, "`name` of the server's service account, in the namespace of --service")
	flags.StringVar(&m.caFile, "ca-file", "", "`file` with the CA certificates for the caBundle, PEM; empty to leave the caBundle to another component, such as cert-manager")
	cli.CompleteFiles(cmd, "ca-file")
	m.extra.AddFlags(flags, "the webhook configurations and CustomResourceDefinitions")
	m.addWorkloadFlags(flags)
	own := map[string]bool{}
	flags.VisitAll(func(flag *pflag.Flag) { own[flag.Name] = true })
	a.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := m.validate(parts); err != nil {
			return setting.ByFlags(flags, err)
		}
		m.args = cli.Given(flags, func(flag *pflag.Flag) bool { return !own[flag.Name] })
		objects, err := m.objects()
		if err != nil {
			return err
		}
		return cli.PrintYAML(cmd.OutOrStdout(), objects)
	}
	return cmd
}

func (m *manifestsCommand) addWorkloadFlags(flags *pflag.FlagSet) {
	flags.StringVar(&m.workload.Image, "image", "", "with --part workload: the `image` of the server, whose entry point is this program")
	flags.Int32Var(&m.workload.Replicas, "replicas", 2, "with --part workload: `number` of servers")
	flags.StringVar(&m.workload.PriorityClass, "priority-class", "",
		"with --part workload: `name` of the pods' priority class, for example system-cluster-critical if the cluster depends on these webhooks; empty for none")
	flags.StringVar(&m.workload.TLSSecret, "tls-secret", "",
		"with --part workload and --certificate-source Files: `name` of the Secret with tls.crt, tls.key and ca.crt")
	m.resources.addFlags(flags)
}

func (m *manifestsCommand) has(part string) bool { return slices.Contains(m.parts, part) }

func (m *manifestsCommand) validate(parts []string) error {
	s := &m.app
	var problems error
	m.chosen, problems = s.Choose()
	errs := []error{problems}
	for _, err := range s.Settings.Validate() {
		if err.Type != field.ErrorTypeRequired || !slices.Contains(hosting.FilesOfServers, err.Field) {
			errs = append(errs, err)
		}
	}
	if s.Registration.Service == nil && s.Registration.URL == "" && s.Registration.Mode == registration.ModeNone && s.Certificate.Source == certificate.SourceFiles {
		errs = append(errs, field.Required(field.NewPath("registration", "service"), "set it or url: the API server must know where the webhooks are"))
	}
	if len(m.parts) == 0 {
		errs = append(errs, fmt.Errorf("--part is empty: choose %s", cli.OneOf(parts)))
	}
	for _, part := range m.parts {
		errs = append(errs, cli.Choice("part", part, parts))
	}
	errs = append(errs, m.extra.Validate())
	for _, part := range []string{partNamespace, partService} {
		if m.has(part) && s.Registration.Service == nil {
			errs = append(errs, fmt.Errorf("--part %s needs --service, which says which one it is", part))
		}
	}
	if m.has(partWorkload) {
		errs = append(errs, m.workload.Validate(&s.Settings), m.resources.validate())
		if s.Serving.SecurePort == 0 {
			errs = append(errs, errors.New("--part workload needs a --secure-port: a Service must know which one it is"))
		}
	}
	for _, problem := range validation.IsDNS1123Subdomain(m.serviceAccount) {
		errs = append(errs, fmt.Errorf("--service-account %q: %s", m.serviceAccount, problem))
	}
	return errors.Join(errs...)
}

// resources are the resources of the server's container.
type resources struct{ cpu, memory, memoryLimit resource.QuantityValue }

func newResources() resources {
	usual := DefaultResources()
	return resources{
		cpu:         resource.QuantityValue{Quantity: usual.Requests.Cpu().DeepCopy()},
		memory:      resource.QuantityValue{Quantity: usual.Requests.Memory().DeepCopy()},
		memoryLimit: resource.QuantityValue{Quantity: usual.Limits.Memory().DeepCopy()},
	}
}

func (r *resources) addFlags(flags *pflag.FlagSet) {
	flags.Var(&r.cpu, "cpu-request", "with --part workload: `quantity` of CPU that a server requests")
	flags.Var(&r.memory, "memory-request", "with --part workload: `quantity` of memory that a server requests")
	flags.Var(&r.memoryLimit, "memory-limit", "with --part workload: `quantity` of memory that a server may use; caches of controllers are in it")
}

func (r *resources) validate() error {
	var errs []error
	if r.cpu.Sign() < 0 || r.memory.Sign() < 0 {
		errs = append(errs, errors.New("--cpu-request and --memory-request must not be negative"))
	}
	if r.memoryLimit.Cmp(r.memory.Quantity) < 0 || r.memoryLimit.Sign() <= 0 {
		errs = append(errs, fmt.Errorf("--memory-limit %s must be positive, and at least --memory-request %s", &r.memoryLimit.Quantity, &r.memory.Quantity))
	}
	return errors.Join(errs...)
}
