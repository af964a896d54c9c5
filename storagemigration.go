// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"slices"

	"github.com/sallyport-io/sallyport/internal/install/storagemigration"
)

// WithStorageMigration migrates stored objects of CustomResourceDefinitions, named
// "plural.group": whenever status.storedVersions of one names another version than its storage
// version, the replica that leads has the API server rewrite all objects, 50 a second, and then
// removes the other versions from status.storedVersions. Objects that cannot be rewritten, for
// example because they cannot be converted, are reported by events of the definition, the log and
// metrics, and keep status.storedVersions as it is until a later attempt succeeds.
//
// Nothing is stored about the progress: a new leader starts over, and objects that are already
// stored in the storage version are not written again. The command manifests prints the rights
// that it needs: to list and patch the objects, to get the definition and to patch its status.
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
				m, err := storagemigration.New(storagemigration.Options{CRD: crd, Client: env.Client, Logger: env.Logger, Metrics: env.Metrics, Leader: env.Leader()})
				return Component{Name: "storage migration of " + crd, Detail: m.Detail, Run: m.Run}, err
			}})
		}
	}
}
