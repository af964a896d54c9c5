// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"log/slog"

	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/registration"
)

// componentsLeader is the [Leader] of components. It is the leader of the authority
// where there is one. It is known only after the components were built.
type componentsLeader struct {
	*hosting.Leader
	asked bool
}

// ask is [Environment.Leader].
func (c *componentsLeader) ask() Leader {
	c.asked = true
	return c
}

// stand finds the election in which the replica takes part, if a component wants to
// know: that of the authority, or one of its own by a lease that is named after the
// application. Where no namespace is known for it, every replica leads: outside of the
// cluster there is one.
func (c *componentsLeader) stand(authority *hosting.Leader, s *Settings, name string, clients kubernetes.Interface, log *slog.Logger) error {
	c.Leader = authority
	namespace, ok := componentsNamespace(s.LeaderElection, s.Registration.Config())
	if authority != nil || !c.asked || !ok || clients == nil {
		return nil
	}
	var err error
	c.Leader, err = hosting.NewLeader(clients.CoordinationV1(), namespace, componentsLease(name), s.LeaderElection.times(), log)
	return err
}

// componentsLease is not the name that the lease of controllers has: that one is held
// by another candidate of the same process.
func componentsLease(application string) string { return application + "-components" }

// componentsNamespace is that of the lease of components, if they have one of their
// own.
func componentsNamespace(election LeaderElectionSettings, config registration.Config) (namespace string, ok bool) {
	namespace = election.Namespace
	if service := config.Endpoint.Service; namespace == "" && service != nil {
		namespace = service.Namespace
	}
	return namespace, election.Enabled && namespace != ""
}
