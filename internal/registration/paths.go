// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"net/url"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Paths returns the paths at which the API server calls the webhooks of the live
// configurations. known is false until both configurations have been observed. It does not call
// the API server.
func (k *Controller) Paths() (paths []string, known bool) {
	add := func(c admissionregistrationv1.WebhookClientConfig) {
		switch {
		case c.Service != nil && c.Service.Path != nil:
			paths = append(paths, *c.Service.Path)
		case c.URL != nil:
			if u, err := url.Parse(*c.URL); err == nil {
				paths = append(paths, u.Path)
			}
		}
	}
	for _, kind := range []string{mutatingKind, validatingKind} {
		o := k.find(kind)
		if o == nil {
			return nil, false
		}
		observed, synced := o.observed()
		if !synced {
			return nil, false
		}
		switch c := observed.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for i := range c.Webhooks {
				add(c.Webhooks[i].ClientConfig)
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for i := range c.Webhooks {
				add(c.Webhooks[i].ClientConfig)
			}
		}
	}
	return paths, true
}
