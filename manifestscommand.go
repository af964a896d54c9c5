// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
	"github.com/sallyport-io/sallyport/internal/install"
)

// WithCRDs adds the application's CustomResourceDefinitions, for its command manifests.
// A converter of one must know all its served versions.
func WithCRDs(crds ...*apiextensionsv1.CustomResourceDefinition) Option {
	return func(a *App) { a.crds = append(a.crds, crds...) }
}

// CRDs returns the definitions of [WithCRDs].
func (a *App) CRDs() []*apiextensionsv1.CustomResourceDefinition { return slices.Clone(a.crds) }

// WithPolicyRules adds rights of webhooks and controllers in the cluster, for the
// command manifests. The rights for serving and registration are known.
func WithPolicyRules(rules ...rbacv1.PolicyRule) Option {
	return func(a *App) { a.rules = append(a.rules, rules...) }
}

// checkCRDs checks that all served versions of a definition convert to each other.
func checkCRDs(a *App) {
	for i, crd := range a.crds {
		if crd == nil {
			a.problem("CustomResourceDefinition %d is nil", i+1)
			continue
		}
		for _, converter := range a.converters {
			if converter.CRD() != crd.Name {
				continue
			}
			var served []string
			for _, version := range crd.Spec.Versions {
				if version.Served {
					served = append(served, version.Name)
				}
			}
			if err := converter.Covers(served...); err != nil {
				a.problem("CustomResourceDefinition %s: %w", crd.Name, err)
			}
		}
	}
}

// installation returns the input of a command that installs, with settings of its own, and what adds the flags that
// set these.
func (a *App) installation() (install.Application, func(*cobra.Command)) {
	s := newCommandSettings(a)
	rules, in := a.rights()
	return install.Application{
		Name: a.name, Version: a.version, CRDs: a.crds, Rules: rules, RulesIn: in, Converters: a.converters,
		Choose: func() (install.Chosen, error) {
			c, err := a.choose(&s.Settings)
			return install.Chosen{
				Webhooks: c.webhooks, Converters: c.converters, Controllers: len(c.controllers) > 0,
				Reads:    c.managed() || len(c.components) > len(a.migrated),
				Unknown:  slices.ContainsFunc(c.components, func(c component) bool { return !c.declares }),
				Migrates: len(c.components) > 0 && len(a.migrated) > 0,
			}, errors.Join(err, setting.Join(tags.Validate(&s.Log, field.NewPath("log"))))
		},
		Validate: func() error {
			s.Client = &rest.Config{} // no cluster is called
			return s.validate(a)
		},
		Settings: *hosted(&s.Settings, a.authenticationNames()),
	}, func(cmd *cobra.Command) { a.addFlags(cmd, s, false) }
}
