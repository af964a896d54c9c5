// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// definitions returns a func for the current webhooks: those in applied, except that
// Registered of a component may change the component's own. Own are webhooks without a
// component, before they are applied.
func definitions(s *registration.Settings, components []Component, own, applied []admission.Webhook, logger *slog.Logger) func() []admission.Webhook {
	if !slices.ContainsFunc(components, func(c Component) bool { return c.Registered != nil }) {
		return func() []admission.Webhook { return applied }
	}
	var last atomic.Pointer[[]admission.Webhook] // the last valid definitions
	last.Store(&[]admission.Webhook{})
	return func() []admission.Webhook {
		now := slices.Clone(own)
		for _, component := range components {
			if component.Registered != nil {
				now = append(now, component.Registered()...)
			} else {
				now = append(now, component.Webhooks...)
			}
		}
		now, err := hosting.Apply(s, now)
		if err != nil {
			logger.Error("invalid settings of webhooks; keeping the previous registration", "error", err)
			return *last.Load()
		}
		last.Store(&now)
		return now
	}
}
