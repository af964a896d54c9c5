// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"log/slog"

	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/registration"
)

// Election is who leads of those that ask. It is known only after they did.
type Election struct {
	*Leader
	asked bool
}

// Ask says that somebody wants to know who leads.
func (e *Election) Ask() { e.asked = true }

// Stand finds the election in which the replica takes part, if a component wants to
// know: that of the authority in a Secret, or one of its own by a lease that is named after the
// application. Where no namespace is known for it, every replica leads: outside of the
// cluster there is one.
func (e *Election) Stand(authority *Leader, s LeaderElectionSettings, config registration.Config, name string, clients kubernetes.Interface, log *slog.Logger) error {
	e.Leader = authority
	namespace, ok := ComponentsNamespace(s, config)
	if authority != nil || !e.asked || !ok || clients == nil {
		return nil
	}
	var err error
	e.Leader, err = NewLeader(clients.CoordinationV1(), namespace, ComponentsLease(name), s.Times(), log)
	return err
}

// ComponentsLease is not the name that the lease of controllers has: that one is held
// by another candidate of the same process.
func ComponentsLease(application string) string { return application + "-components" }

// ComponentsNamespace is that of the lease of components, if they have one of their
// own.
func ComponentsNamespace(election LeaderElectionSettings, config registration.Config) (namespace string, ok bool) {
	namespace = election.Namespace
	if service := config.Endpoint.Service; namespace == "" && service != nil {
		namespace = service.Namespace
	}
	return namespace, election.Enabled && namespace != ""
}
