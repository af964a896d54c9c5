// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	v1core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// runAlone serves the webhooks of a program that runs no controllers: without leader
// election, without the port of the controllers, and without waiting for the API
// server.
func (c *command) runAlone(ctx context.Context, webhooks []*Webhook) error {
	o := c.options
	o.Generic.Controllers = nil // upstream does not support -*
	o.Generic.LeaderElection.LeaderElect = false
	o.SecureServing.BindPort = 0
	made, err := o.Config(nil, nil, nil, nil, nil)
	if err != nil {
		return err
	}
	completed := made.Complete()
	completed.EventBroadcaster.StartStructuredLogging(0)
	completed.EventBroadcaster.StartRecordingToSink(&v1core.EventSinkImpl{Interface: completed.Client.CoreV1().Events("")})
	defer completed.EventBroadcaster.Shutdown()
	h, err := open(ctx, c.settings, webhooks, completed, c.initialize)
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	return h.run(ctx)
}

// applyLogging applies the logging flags like upstream's command, which does not expose
// their values. A builder's command has no such flags.
func applyLogging(given *pflag.FlagSet) error {
	o := logs.NewOptions()
	own := pflag.NewFlagSet("logging", pflag.ContinueOnError)
	logsapi.AddFlags(o, own)
	var errs []error
	known := false
	own.VisitAll(func(flag *pflag.Flag) {
		from := given.Lookup(flag.Name)
		known = known || from != nil && flag.Name == "logging-format"
		if from != nil && from.Changed {
			errs = append(errs, flag.Value.Set(from.Value.String()))
		}
	})
	if err := errors.Join(errs...); err != nil || !known {
		return err
	}
	return logsapi.ValidateAndApply(o, utilfeature.DefaultFeatureGate)
}
