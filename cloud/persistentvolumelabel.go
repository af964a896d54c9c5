// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"

	cloudprovider "k8s.io/cloud-provider"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/webhooks/persistentvolumelabel"
)

// PersistentVolumeLabel labels persistent volumes of a provider's own source: of aws,
// gce, azure, openstack or vsphere. The cloud is a cloudprovider.PVLabeler, and is asked
// for no other volumes. It needs no initialised cloud.
func PersistentVolumeLabel(provider string) Webhook {
	settings := persistentvolumelabel.DefaultSettings()
	source, ok := persistentvolumelabel.SourceOf(provider)
	if !ok {
		return Webhook{problem: fmt.Errorf("persistentvolumelabel: the API has no volume source of provider %q: choose aws, gce, azure, openstack or vsphere, "+
			"or PersistentVolumeLabelWith for a source of another one", provider)}
	}
	settings.Sources = []persistentvolumelabel.Source{source}
	return PersistentVolumeLabelWith(settings)
}

// PersistentVolumeLabelWith is [PersistentVolumeLabel] with other settings.
func PersistentVolumeLabelWith(settings persistentvolumelabel.Settings) Webhook {
	if err := settings.Validate(); err != nil {
		return Webhook{problem: fmt.Errorf("persistentvolumelabel: %w", err)}
	}
	return Webhook{
		Name:       "persistentvolumelabel",
		Aliases:    []string{"pvl"},
		Definition: persistentvolumelabel.Definition(settings),
		New: func(d Dependencies) (admission.Handler, error) {
			labeler, ok := d.Cloud.(cloudprovider.PVLabeler)
			if !ok {
				return nil, fmt.Errorf("cloud provider %s does not implement PV labeling: take the webhook out of --webhooks", d.Cloud.ProviderName())
			}
			webhooks, err := persistentvolumelabel.New(labeler, settings)
			if err != nil {
				return nil, err
			}
			return webhooks[0].Handler, nil
		},
	}
}
