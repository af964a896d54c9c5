// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"github.com/sallyport-io/sallyport/internal/install"
)

// InstallRights returns exactly the permissions of a server with this configuration.
func InstallRights(c *Config, serviceAccount string) install.Rights {
	rights := install.Rights{
		Registration: c.AppRegistration(), Certificate: c.Certificate, LeaderElection: c.LeaderElection, ServiceAccount: serviceAccount,
		Rules: c.Rights(), RulesIn: c.RightsIn(),
	}
	for _, b := range c.Enabled() {
		if b.registers != nil {
			rights.Rules = append(rights.Rules, b.registers(c)...)
		}
	}
	if c.Controls() {
		rights.ComponentsOf = Name
	}
	return rights
}
