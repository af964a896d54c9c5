// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"slices"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/install/storagemigration"
)

// WithStorageMigration migrates stored objects of CustomResourceDefinitions, named
// "plural.group", with Kubernetes' own storage version migrator: whenever status.storedVersions of
// one names another version than its storage version, the replica that leads creates a
// StorageVersionMigration with the definition's name. kube-controller-manager then has all objects
// rewritten, and removes the other versions from status.storedVersions. Objects of the
// application's converters are migrated once the definition names the conversion webhook.
//
// Events of the definition, the log and metrics report how a migration ends. A failed one is
// repeated, after a minute and then after up to half an hour. Where the API server does not serve
// storagemigration.k8s.io/v1, as Kubernetes 1.37 does by default, they say what to do instead.
//
// The command manifests prints the rights that it needs: to get the definition and to patch its
// status, and to get, create and delete StorageVersionMigrations.
func WithStorageMigration(crds ...string) Option {
	return func(a *App) {
		for _, crd := range crds {
			if err := storagemigration.Validate(crd); err != nil {
				a.problem("storage migration: %w", err)
				continue
			}
			if slices.Contains(a.migrated, crd) {
				a.problem("storage migration: %s is given twice", crd)
				continue
			}
			a.migrated = append(a.migrated, crd)
			a.rules = append(a.rules, storagemigration.PolicyRules(crd)...)
			a.components = append(a.components, component{declares: true, build: func(env Environment) (Component, error) {
				m, err := storagemigration.New(storagemigration.Options{
					CRD: crd, Converted: slices.ContainsFunc(a.converters, func(c conversion.Converter) bool { return c.CRD() == crd }),
					Client: env.Client, Logger: env.Logger, Metrics: env.Metrics, Leader: env.Leader(),
				})
				return Component{Name: "storage migration of " + crd, Detail: m.Detail, Run: m.Run}, err
			}})
		}
	}
}
