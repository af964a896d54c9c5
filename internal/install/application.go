// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
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

// Manifests are the objects of an installation.
type Manifests struct {
	Application
	// Parts are some of those that [Application.Parts] names.
	Parts          []string
	ServiceAccount string
	// CAFile has the caBundle in PEM; empty if another client writes it.
	CAFile string
	// Extra is for the webhook configurations and the definitions.
	Extra     Extra
	Workload  Workload
	Resources Resources
	// Args are the flags of the server.
	Args []string

	chosen Chosen
}

// Parts returns the names of the parts of an installation of the application: all, and those that do not depend
// on how the server runs.
func (a *Application) Parts() (all, usual []string) {
	all, usual = []string{partNamespace, partRBAC, partService, partWorkload, partConfigurations}, []string{partRBAC, partConfigurations}
	if len(a.CRDs) > 0 {
		all, usual = slices.Insert(all, 1, partCRD), slices.Insert(usual, 0, partCRD)
	}
	return all, usual
}

func (m *Manifests) has(part string) bool { return slices.Contains(m.Parts, part) }

// Validate reports every problem.
func (m *Manifests) Validate() error {
	parts, _ := m.Application.Parts()
	var problems error
	m.chosen, problems = m.Choose()
	errs := []error{problems}
	for _, err := range m.Settings.Validate() {
		if err.Type != field.ErrorTypeRequired || !slices.Contains(hosting.FilesOfServers, err.Field) {
			errs = append(errs, err)
		}
	}
	if m.Registration.Service == nil && m.Registration.URL == "" && m.Registration.Mode == registration.ModeNone && m.Certificate.Source == certificate.SourceFiles {
		errs = append(errs, field.Required(field.NewPath("registration", "service"), "set it or url: the API server must know where the webhooks are"))
	}
	if len(m.Parts) == 0 {
		errs = append(errs, fmt.Errorf("--part is empty: choose %s", cli.OneOf(parts)))
	}
	for _, part := range m.Parts {
		errs = append(errs, cli.Choice("part", part, parts))
	}
	errs = append(errs, m.Extra.Validate())
	for _, part := range []string{partNamespace, partService} {
		if m.has(part) && m.Registration.Service == nil {
			errs = append(errs, fmt.Errorf("--part %s needs --service, which says which one it is", part))
		}
	}
	if m.has(partWorkload) {
		errs = append(errs, m.Workload.Validate(&m.Settings), m.Resources.validate())
		if m.Serving.SecurePort == 0 {
			errs = append(errs, errors.New("--part workload needs a --secure-port: a Service must know which one it is"))
		}
	}
	for _, problem := range validation.IsDNS1123Subdomain(m.ServiceAccount) {
		errs = append(errs, fmt.Errorf("--service-account %q: %s", m.ServiceAccount, problem))
	}
	return errors.Join(errs...)
}

// Resources are the resources of the server's container.
type Resources struct{ CPU, Memory, MemoryLimit resource.QuantityValue }

// NewResources returns [DefaultResources].
func NewResources() Resources {
	usual := DefaultResources()
	return Resources{
		CPU:         resource.QuantityValue{Quantity: usual.Requests.Cpu().DeepCopy()},
		Memory:      resource.QuantityValue{Quantity: usual.Requests.Memory().DeepCopy()},
		MemoryLimit: resource.QuantityValue{Quantity: usual.Limits.Memory().DeepCopy()},
	}
}

func (r *Resources) validate() error {
	var errs []error
	if r.CPU.Sign() < 0 || r.Memory.Sign() < 0 {
		errs = append(errs, errors.New("--cpu-request and --memory-request must not be negative"))
	}
	if r.MemoryLimit.Cmp(r.Memory.Quantity) < 0 || r.MemoryLimit.Sign() <= 0 {
		errs = append(errs, fmt.Errorf("--memory-limit %s must be positive, and at least --memory-request %s", &r.MemoryLimit.Quantity, &r.Memory.Quantity))
	}
	return errors.Join(errs...)
}
