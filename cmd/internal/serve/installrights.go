// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"github.com/sallyport-io/sallyport/internal/install"
	"github.com/sallyport-io/sallyport/registration"
)

// InstallRights returns exactly the permissions of a server with this configuration.
func InstallRights(c *Config, serviceAccount string) install.Rights {
	rights := install.Rights{
		Registration: c.AppRegistration(), Certificate: c.Certificate, LeaderElection: c.LeaderElection, ServiceAccount: serviceAccount,
		Rules: c.Rights(), RulesIn: c.RightsIn(),
	}
	if c.Has("poddefault") && rights.Registration.Mode == registration.ModeAPI {
		rights.Rules = append(rights.Rules, registration.BackstopPolicyRules(c.Registration.Name)...)
	}
	if c.Controls() {
		rights.ComponentsOf = Name
	}
	return rights
}
