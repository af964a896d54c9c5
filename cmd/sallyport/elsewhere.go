// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/webhooks/persistentvolumelabel"
)

// elsewhere are ready-made webhooks that serve does not host, because what they ask is
// in another program: cloud providers are in cloud controller managers. They are listed,
// and cannot be enabled here.
func elsewhere() []builtin {
	return []builtin{
		{
			name:  "persistentvolumelabel",
			short: "label volumes with zone and region of their disks (in cloud controller managers only)",
			docs:  "docs/webhooks/persistentvolumelabel.md",
			webhooks: func(*builtinSettings, builtinSources) ([]admission.Webhook, error) {
				return []admission.Webhook{persistentvolumelabel.Definition(persistentvolumelabel.DefaultSettings())}, nil
			},
		},
	}
}

// hostedElsewhere says where a webhook of a selection is, if it is not here.
func hostedElsewhere(selection []string) error {
	for _, entry := range selection {
		for _, b := range elsewhere() {
			if strings.TrimPrefix(entry, "-") == b.name {
				return fmt.Errorf("--webhooks: %s is hosted by cloud controller managers, not by sallyport: see docs/cloud.md", b.name)
			}
		}
	}
	return nil
}
