// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"time"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// Settings are the settings of a process that serves webhooks, wherever they are kept: in a file,
// or in the settings of an application.
type Settings struct {
	Registration   *registration.Settings
	Certificate    *certificate.Settings
	LeaderElection *registration.LeaderElectionSettings
	Authentication *serving.AuthenticationSettings
	Serving        *serving.Settings
	// Modes are the available modes of authentication.
	Modes []string
}

// SetDefaults sets the defaults for an application of that name. No other place has a default of a
// setting; serve and cloud say where theirs differ.
func (s *Settings) SetDefaults(name string) {
	*s.Registration = registration.Settings{
		Mode: registration.ModeAPI, Name: name, ExcludedNamespaces: selectors.ExcludedNamespaces(), OwnPods: "app.kubernetes.io/name=" + name, ForeignTerms: ForeignTermsKeep,
	}
	*s.Certificate = certificate.DefaultSettings(name)
	// The defaults of Kubernetes' components.
	*s.LeaderElection = registration.LeaderElectionSettings{
		LeaderElect: true, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}
	*s.Authentication = serving.AuthenticationSettings{
		Mode: serving.AuthenticationNone, Metrics: serving.AuthenticationNone, ClientCommonNames: []string{}, PrivatePaths: PrivatePathsNever,
	}
	*s.Serving = serving.DefaultSettings()
}

// The values of authentication.privatePaths.
const (
	PrivatePathsAlways = "Always"
	PrivatePathsNever  = "Never"
	PrivatePathsAuto   = "Auto"
)

// What the server does with the terms of other clients.
const (
	ForeignTermsKeep   = "Keep"
	ForeignTermsRefuse = "Refuse"
)
