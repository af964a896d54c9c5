// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/imagepull"
)

func imagePullBuiltin() Builtin {
	return Builtin{
		Name:  "imagepull",
		Short: "always pull images, from allowed registries, by a version",
		Docs:  "docs/webhooks/imagepull.md",
		settings: func() settings {
			s := imagepull.DefaultSettings()
			return &s
		},
		webhooks: func(c *Config, _ Sources) ([]admission.Webhook, error) {
			return imagepull.New(*c.Settings["imagepull"].(*imagepull.Settings))
		},
	}
}
