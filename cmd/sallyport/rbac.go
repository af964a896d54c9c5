// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/sallyport-io/sallyport/internal/install"
	"github.com/sallyport-io/sallyport/internal/server"
	"github.com/sallyport-io/sallyport/registration"
)

// serverRights are those of a server with this configuration, and no more.
func serverRights(c *server.Config, serviceAccount string) install.Rights {
	rights := install.Rights{
		Registration: c.AppRegistration(), Certificate: c.AppCertificate(), LeaderElection: c.AppLeaderElection(), ServiceAccount: serviceAccount,
		Rules: c.Rights(), RulesIn: c.RightsIn(),
	}
	if c.Has("poddefault") && rights.Registration.Mode == registration.ModeAPI {
		rights.Rules = append(rights.Rules, registration.BackstopPolicyRules(c.Registration.Name)...)
	}
	if c.Controls() {
		rights.ComponentsOf = server.Name
	}
	return rights
}
