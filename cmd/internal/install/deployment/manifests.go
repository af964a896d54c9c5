// SPDX-License-Identifier: Apache-2.0

// Package deployment derives an installation of the server from its configuration: objects to
// apply, permissions, policies that replace a server, and uninstalling.
package deployment

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/hosting/staticmanifests"
	"github.com/sallyport-io/sallyport/internal/install"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// The parts of an installation.
const (
	partNamespace      = "namespace"
	partCRD            = "crd"
	partRBAC           = "rbac"
	partUserRoles      = "user-roles"
	partFlowControl    = "flowcontrol"
	partWorkload       = "workload"
	partConfigurations = "configurations"
)

var (
	// AllParts lists all parts.
	AllParts = []string{partNamespace, partCRD, partRBAC, partUserRoles, partFlowControl, partWorkload, partConfigurations}
	// DefaultParts do not depend on how the server runs.
	DefaultParts = []string{partCRD, partRBAC, partUserRoles, partFlowControl, partConfigurations}
)

// Manifests are the objects of an installation.
type Manifests struct {
	Server *serve.Config
	// Given are the flags of the command. serve gets those that it supports.
	Given *setting.Given
	// ConfigFile is the configuration file, which the workload mounts; empty for none.
	ConfigFile     string
	Parts          []string // of AllParts
	ServiceAccount string
	// CAFile has the caBundle in PEM; empty if another client writes it.
	CAFile string
	// Extra is for the webhook configurations.
	Extra install.Extra
	// Static is set for static admission manifests.
	Static   bool
	Callers  Callers
	Workload Workload
}

// Validate reports every problem, by flags of the command, except those in the server's
// configuration. The CRDs depend on no flag of the server.
func (m *Manifests) Validate() error {
	var errs []error
	if len(m.Parts) == 0 {
		errs = append(errs, fmt.Errorf("--part is empty: choose %s", cli.OneOf(AllParts)))
	}
	for _, part := range m.Parts {
		errs = append(errs, cli.Choice("part", part, AllParts))
	}
	inCluster := m.Server.Registration.Service != nil
	if !inCluster && m.Server.Registration.URL == "" && slices.ContainsFunc(m.Parts, func(part string) bool { return part != partCRD }) {
		errs = append(errs, errors.New("--service or --url is required: the API server must know where the webhooks are"))
	}
	if m.Static && !slices.Equal(m.Parts, []string{partConfigurations}) {
		errs = append(errs, errors.New("--static prints webhook configurations only: add --part configurations"))
	}
	if m.Static && inCluster {
		errs = append(errs, errors.New("--static needs --url: kube-apiserver takes no Service in static manifests"))
	}
	if slices.Contains(m.Parts, partWorkload) {
		errs = append(errs, m.Workload.validate(m))
	}
	if slices.Contains(m.Parts, partNamespace) && !inCluster {
		errs = append(errs, errors.New("--part namespace needs --service, which says which one it is"))
	}
	errs = append(errs, m.Callers.validate(), m.Extra.Validate())
	if m.Static && serve.PodDefault(m.Server).Guard == serve.GuardBackstop {
		errs = append(errs, errors.New("the guard Backstop of poddefault is not for --static: static manifests hold no policy with a parameter"))
	}
	for _, problem := range validation.IsDNS1123Subdomain(m.ServiceAccount) {
		errs = append(errs, fmt.Errorf("--service-account %q: %s", m.ServiceAccount, problem))
	}
	return errors.Join(errs...)
}

// Objects returns the objects to print, in the order of their creation. The manifests must be
// valid.
func (m *Manifests) Objects() ([]runtime.Object, error) {
	config := m.registration()
	var objects []runtime.Object
	if slices.Contains(m.Parts, partNamespace) {
		objects = append(objects, install.Namespace(config.Endpoint.Service.Namespace))
	}
	if slices.Contains(m.Parts, partCRD) && m.Server.Has("poddefault") { // the CRDs are its own
		crds, err := crd.All()
		if err != nil {
			return nil, err
		}
		for _, definition := range crds {
			objects = append(objects, definition)
		}
		objects = append(objects, exempt.Policy()...) // without it, any editor of Exemptions would exempt
	}
	if slices.Contains(m.Parts, partRBAC) {
		objects = append(objects, serve.InstallRights(m.Server, m.ServiceAccount).Objects()...)
		rights, err := m.Callers.rights(config, m.ServiceAccount, m.Server)
		if err != nil {
			return nil, err
		}
		objects = append(objects, rights...)
	}
	if slices.Contains(m.Parts, partUserRoles) && m.Server.Has("poddefault") {
		objects = append(objects, UserRoles(config.Name)...)
	}
	if slices.Contains(m.Parts, partFlowControl) {
		objects = append(objects, flowControl(config, m.ServiceAccount)...)
	}
	if m.Callers.NetworkPolicy && (slices.Contains(m.Parts, partWorkload) || m.Given.Changed("network-policy") || len(m.Callers.CIDRs) > 0) {
		policies, err := m.Callers.policy(config, m.podLabels())
		if err != nil {
			return nil, err
		}
		objects = append(objects, policies...)
	}
	if slices.Contains(m.Parts, partWorkload) {
		workload, err := m.Workload.objects(m)
		if err != nil {
			return nil, err
		}
		objects = append(objects, workload...)
	}
	if slices.Contains(m.Parts, partConfigurations) {
		configurations, err := m.configurations()
		if err = errors.Join(err, m.Extra.Apply(configurations)); err != nil {
			return nil, err
		}
		objects = append(objects, configurations...)
	}
	return objects, nil
}

func (m *Manifests) configurations() ([]runtime.Object, error) {
	caBundle, err := cli.ReadCABundle("ca-file", m.CAFile)
	if err != nil {
		return nil, err
	}
	defined, settings := m.Server, m.Server.AppRegistration()
	if serve.PodDefault(defined).Guard == "" { // the version of the API server is unknown, so it may lack such policies
		defined = defined.WithGuard(serve.GuardFail)
	}
	webhooks, err := defined.Define(serve.NoSources())
	if err != nil {
		return nil, err
	}
	if webhooks, err = hosting.Apply(&settings, webhooks); err != nil {
		return nil, err
	}
	if m.Static {
		return staticmanifests.Manifests(m.registration(), webhooks, caBundle)
	}
	return registration.Manifests(m.registration(), webhooks, caBundle)
}

// registration returns the registration settings of the configuration.
func (m *Manifests) registration() registration.Config {
	return hosting.Config(&m.Server.Registration)
}
