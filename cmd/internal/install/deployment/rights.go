// SPDX-License-Identifier: Apache-2.0

// Package deployment derives an installation of the server from its configuration: objects to
// apply, permissions, policies that replace a server, and uninstalling.
package deployment

import (
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/install"
	"github.com/sallyport-io/sallyport/registration"
)

// Rights returns exactly the permissions of a server with this configuration.
func Rights(c *serve.Config, serviceAccount string) install.Rights {
	rights := install.Rights{
		Registration: c.AppRegistration(), Certificate: c.Certificate, LeaderElection: c.LeaderElection, ServiceAccount: serviceAccount,
		Rules: c.Rights(), RulesIn: c.RightsIn(),
	}
	if c.Has("poddefault") && rights.Registration.Mode == registration.ModeAPI {
		rights.Rules = append(rights.Rules, registration.BackstopPolicyRules(c.Registration.Name)...)
	}
	if c.Controls() {
		rights.ComponentsOf = serve.Name
	}
	return rights
}
