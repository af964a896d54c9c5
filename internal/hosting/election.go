// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"log/slog"

	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/sallyport-io/sallyport/internal/registration"
)

// Election determines the leader for the components that ask for it, once all of them have
// asked.
type Election struct {
	*Leader
	asked bool
}

// Ask records that a component needs a leader.
func (e *Election) Ask() { e.asked = true }

// Stand joins an election if a component asked for one: the authority's in a Secret, or a
// separate one whose lease is named after the application. Without a known namespace for that
// lease every replica leads: outside a cluster there is only one.
func (e *Election) Stand(authority *Leader, s registration.LeaderElectionSettings, config registration.Config, name string, leases coordinationclient.LeasesGetter, log *slog.Logger) error {
	e.Leader = authority
	namespace, ok := ComponentsNamespace(s, config)
	if authority != nil || !e.asked || !ok || leases == nil {
		return nil
	}
	var err error
	e.Leader, err = NewLeader(leases, namespace, ComponentsLease(name), s, log)
	return err
}

// ComponentsLease returns the name of the components' lease. It differs from the controllers'
// lease, which another candidate in the same process holds.
func ComponentsLease(application string) string { return application + "-components" }

// ComponentsNamespace returns the namespace of the components' lease, if they have their own.
func ComponentsNamespace(election registration.LeaderElectionSettings, config registration.Config) (namespace string, ok bool) {
	namespace = election.Namespace
	if service := config.Endpoint.Service; namespace == "" && service != nil {
		namespace = service.Namespace
	}
	return namespace, election.LeaderElect && namespace != ""
}
