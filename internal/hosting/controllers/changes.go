// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// changed are the options after the changes. Of what belongs to the application nothing may be
// another one: probes and metrics have one place, the rights that are printed are for one lease,
// and webhooks of the manager would have no certificate.
func changed(options manager.Options, changes []func(*manager.Options)) (manager.Options, error) {
	before := options
	for _, change := range changes {
		change(&options)
	}
	var errs []error
	for _, owned := range []struct {
		field, instead string
		same           bool
	}{
		{"Metrics.BindAddress", "Settings.Serving.MetricsBindAddress", options.Metrics.BindAddress == before.Metrics.BindAddress},
		{"HealthProbeBindAddress", "Settings.Serving.MetricsBindAddress", options.HealthProbeBindAddress == before.HealthProbeBindAddress},
		{"PprofBindAddress", "a server of your own", options.PprofBindAddress == before.PprofBindAddress},
		{"WebhookServer", "WithWebhooks", options.WebhookServer == nil},
		{"LeaderElection", "Settings.LeaderElection", options.LeaderElection == before.LeaderElection},
		{"LeaderElectionID", "the name of the application", options.LeaderElectionID == before.LeaderElectionID},
		{"LeaderElectionNamespace", "Settings.LeaderElection", options.LeaderElectionNamespace == before.LeaderElectionNamespace},
		{"LeaderElectionConfig", "Settings.Client", options.LeaderElectionConfig == nil},
		{"LeaseDuration, RenewDeadline, RetryPeriod", "Settings.LeaderElection",
			options.LeaseDuration == before.LeaseDuration && options.RenewDeadline == before.RenewDeadline && options.RetryPeriod == before.RetryPeriod},
	} {
		if !owned.same {
			errs = append(errs, fmt.Errorf("WithManagerOptions: %s is the application's: use %s", owned.field, owned.instead))
		}
	}
	return options, errors.Join(errs...)
}
