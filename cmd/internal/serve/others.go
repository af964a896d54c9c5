// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"strings"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting/persistentvolumelabel"
)

// HostedByOthers returns built-in webhooks that serve does not host because they need another
// program: cloud providers are in cloud controller managers. They are listed but cannot be
// enabled here.
func HostedByOthers() []Builtin {
	return []Builtin{
		{
			Name:  "persistentvolumelabel",
			Short: "label volumes with zone and region of their disks (in cloud controller managers only)",
			Docs:  "docs/webhooks/persistentvolumelabel.md",
			webhooks: func(*Config, Sources) ([]admission.Webhook, error) {
				return []admission.Webhook{persistentvolumelabel.Definition(persistentvolumelabel.DefaultSettings())}, nil
			},
		},
	}
}

// hostedByOthers returns an error that says where a selected webhook is hosted, if not here.
func hostedByOthers(selection []string) error {
	for _, entry := range selection {
		for _, b := range HostedByOthers() {
			if strings.TrimPrefix(entry, "-") == b.Name {
				return fmt.Errorf("%s is hosted by cloud controller managers, not by sallyport: see docs/cloud.md", b.Name)
			}
		}
	}
	return nil
}
