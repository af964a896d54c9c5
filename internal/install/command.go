// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/registration"
)

// Application is what is installed.
type Application struct {
	Name       string
	Webhooks   []admission.Webhook
	Converters []conversion.Converter
	CRDs       []*apiextensionsv1.CustomResourceDefinition
	Rules      []rbacv1.PolicyRule // of webhooks and controllers themselves
	// Components is set if there are webhooks that are known only while they run,
	// Controllers if there are controllers.
	Components, Controllers bool

	// The defaults of the flags.
	Registration   hosting.RegistrationSettings
	Certificate    hosting.CertificateSettings
	LeaderElection hosting.LeaderElectionSettings
}

// The parts of what is installed.
const (
	partCRD            = "crd"
	partRBAC           = "rbac"
	partConfigurations = "configurations"
)

// A manifestsCommand prints what to install.
type manifestsCommand struct {
	app            Application
	parts          []string
	serviceAccount string
	caFile         string
}

// Command is the command manifests of an application.
func Command(a Application) *cobra.Command {
	m := manifestsCommand{app: a}
	parts := []string{partRBAC, partConfigurations}
	if len(a.CRDs) > 0 {
		parts = append([]string{partCRD}, parts...)
	}
	cmd := &cobra.Command{
		Use:   "manifests --service NAMESPACE/NAME | --url URL",
		Short: "Print what to install in a cluster: " + strings.Join(parts, ", "),
		Long: "Manifests prints YAML for kubectl apply, derived from the same definitions that the server has. Give it\n" +
			"the flags that the server gets: the rights that it prints are those which such a server needs.\n\n" +
			"A server that registers itself (--registration api, the default) writes the webhook configurations and\n" +
			"conversion stanzas when it is ready, and needs the other parts only. Print them for --registration none.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s takes no argument, but got %q: choose by --part what is printed", cmd.CommandPath(), args[0])
			}
			return nil
		},
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return m.run(cmd.OutOrStdout(), parts) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&m.parts, "part", parts, "`parts` to print, of "+strings.Join(parts, ", ")+"; may be repeated")
	cli.CompleteChoices(cmd, "part", parts)
	flags.StringVar(&m.serviceAccount, "service-account", a.Name, "`name` of the server's service account, in the namespace of --service")
	flags.StringVar(&m.caFile, "ca-file", "", "`file` with what the API server shall trust, PEM, for the caBundle; empty if somebody else writes it")
	cli.CompleteFiles(cmd, "ca-file")
	s := &m.app
	s.Registration.AddModeFlag(cmd)
	s.Registration.AddEndpointFlags(cmd)
	if len(a.Converters) > 0 {
		s.Registration.AddConversionFlag(cmd)
	}
	s.Registration.AddFlags(cmd)
	s.Certificate.AddSourceFlags(cmd)
	s.LeaderElection.AddElectFlag(cmd)
	if a.Controllers {
		s.LeaderElection.AddNamespaceFlag(cmd)
	}
	return cmd
}

func (m *manifestsCommand) validate(parts []string) error {
	s := &m.app
	errs := []error{
		s.Registration.ValidateEndpoint(), s.Registration.Validate(), s.Registration.ValidateConversion(), s.Certificate.ValidateSource(),
	}
	if len(m.parts) == 0 {
		errs = append(errs, fmt.Errorf("--part is empty: choose %s", cli.OneOf(parts)))
	}
	for _, part := range m.parts {
		errs = append(errs, cli.Choice("part", part, parts))
	}
	if namespace := s.LeaderElection.Namespace; namespace != "" {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, fmt.Errorf("--leader-election-namespace %q: %s", namespace, problem))
		}
	}
	for _, problem := range validation.IsDNS1123Subdomain(m.serviceAccount) {
		errs = append(errs, fmt.Errorf("--service-account %q: %s", m.serviceAccount, problem))
	}
	return errors.Join(errs...)
}

func (m *manifestsCommand) run(out io.Writer, parts []string) error {
	if err := m.validate(parts); err != nil {
		return hosting.ByFlags(err)
	}
	caBundle, err := cli.ReadCABundle("ca-file", m.caFile)
	if err != nil {
		return err
	}
	var objects []runtime.Object
	if slices.Contains(m.parts, partCRD) {
		crds, err := m.crds(caBundle)
		if err != nil {
			return err
		}
		objects = append(objects, crds...)
	}
	if slices.Contains(m.parts, partRBAC) {
		rights := Rights{
			Registration: m.app.Registration, Certificate: m.app.Certificate, LeaderElection: m.app.LeaderElection,
			ServiceAccount: m.serviceAccount, Rules: m.app.Rules, CRDs: m.app.converted(),
		}
		if m.app.Controllers {
			rights.ControllersLease = m.app.Name
		}
		objects = append(objects, rights.Objects()...)
	}
	if slices.Contains(m.parts, partConfigurations) {
		configurations, err := m.configurations(caBundle)
		if err != nil {
			return err
		}
		objects = append(objects, configurations...)
	}
	return cli.PrintYAML(out, objects)
}

// crds are the definitions, with their conversion unless the server writes that.
func (m *manifestsCommand) crds(caBundle []byte) ([]runtime.Object, error) {
	var objects []runtime.Object
	for _, crd := range m.app.CRDs {
		crd = crd.DeepCopy()
		crd.TypeMeta.APIVersion, crd.TypeMeta.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
		crd.ManagedFields = nil
		if m.app.Registration.Mode != registration.ModeAPI && slices.Contains(m.app.converted(), crd.Name) {
			conversion, err := registration.ConversionManifest(m.app.Registration.Config(), hosting.ConversionOf(crd.Name), caBundle)
			if err != nil {
				return nil, err
			}
			crd.Spec.Conversion = conversion
		}
		objects = append(objects, crd)
	}
	return objects, nil
}

// configurations are those of the webhooks, of components too: what these stand on is
// neither started nor asked.
func (m *manifestsCommand) configurations(caBundle []byte) ([]runtime.Object, error) {
	if m.app.Components {
		return nil, errors.New("the webhooks of components are known only while they run: leave out --part " + partConfigurations)
	}
	webhooks, err := m.app.Registration.Apply(slices.Clone(m.app.Webhooks))
	if err != nil {
		return nil, hosting.ByFlags(err)
	}
	return registration.Manifests(m.app.Registration.Config(), webhooks, caBundle)
}

// converted are the names of the definitions that have a converter.
func (a *Application) converted() []string {
	var names []string
	for _, converter := range a.Converters {
		names = append(names, converter.CRD())
	}
	return names
}
