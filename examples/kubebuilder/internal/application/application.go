// SPDX-License-Identifier: Apache-2.0

// Package application has the same webhooks in an application of package sallyport.
package application

import (
	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/controllerruntime"
	fleetv1 "github.com/sallyport-io/sallyport/examples/kubebuilder/api/v1"
	webhookv1 "github.com/sallyport-io/sallyport/examples/kubebuilder/internal/webhook/v1"
)

// New returns the application, at the paths that the manager has.
func New() (*sallyport.App, error) {
	captains := fleetv1.GroupVersion.WithResource("captains")
	return sallyport.New("fleet", sallyport.WithWebhooks(
		admission.Mutating("mcaptain-v1.fleet.example.com", admission.Rules(captains),
			controllerruntime.Defaulter(&webhookv1.CaptainCustomDefaulter{DefaultRank: 1}),
			admission.AtPath("/mutate-fleet-example-com-v1-captain")),
		admission.Validating("vcaptain-v1.fleet.example.com", admission.Rules(captains, "CREATE", "UPDATE", "DELETE"),
			controllerruntime.Validator(&webhookv1.CaptainCustomValidator{}),
			admission.AtPath("/validate-fleet-example-com-v1-captain")),
	))
}
