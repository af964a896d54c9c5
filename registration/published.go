// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Published returns the CA bundles, PEM, that the API server trusts now for what
// this Keeper keeps. It calls no API server. The error says that not all objects
// have been seen yet.
func (k *Keeper) Published() ([][]byte, error) {
	k.mu.Lock()
	informers := k.informers
	k.mu.Unlock()
	if len(informers) < len(k.objects) {
		return nil, errors.New("the webhook configurations were not read yet")
	}
	var bundles [][]byte
	for _, informer := range informers {
		if !informer.HasSynced() {
			return nil, errors.New("the webhook configurations were not read yet")
		}
		item, ok, err := informer.GetStore().GetByKey(k.options.Config.Name)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		switch live := item.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for _, webhook := range live.Webhooks {
				bundles = append(bundles, webhook.ClientConfig.CABundle)
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for _, webhook := range live.Webhooks {
				bundles = append(bundles, webhook.ClientConfig.CABundle)
			}
		}
	}
	return bundles, nil
}
