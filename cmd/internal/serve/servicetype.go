// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/servicetype"
)

func serviceTypeBuiltin() Builtin {
	return Builtin{
		Name:  "servicetype",
		Short: "refuse load balancers, node ports, external names and IPs",
		Docs:  "docs/webhooks/servicetype.md",
		settings: func() settings {
			s := servicetype.DefaultSettings()
			return &s
		},
		webhooks: func(c *Config, _ Sources) ([]admission.Webhook, error) {
			return servicetype.New(*c.Settings["servicetype"].(*servicetype.Settings))
		},
	}
}
