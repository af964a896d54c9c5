// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	genericcontrollermanager "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/controller"
	"k8s.io/klog/v2"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting/persistentvolumelabel"
)

// PersistentVolumeLabel labels persistent volumes with the volume source of a provider:
// aws, gce, azure, openstack or vsphere. The cloud must be a cloudprovider.PVLabeler, and
// is not called for other volumes. It need not be initialized.
func PersistentVolumeLabel(provider string) Webhook {
	settings := DefaultPersistentVolumeLabelSettings()
	source, ok := persistentvolumelabel.SourceOf(provider)
	if !ok {
		return Webhook{problem: fmt.Errorf("persistentvolumelabel: the API has no volume source of provider %q: choose aws, gce, azure, openstack or vsphere, "+
			"or PersistentVolumeLabelWith for a source of another one", provider)}
	}
	settings.Sources = []VolumeSource{source}
	return PersistentVolumeLabelWith(settings)
}

// PersistentVolumeLabelSettings configure which volumes are labeled, and how long the cloud
// may take.
type PersistentVolumeLabelSettings = persistentvolumelabel.Settings

// VolumeSource is the name of a volume source field in a volume's spec:
// awsElasticBlockStore, gcePersistentDisk, azureDisk, cinder or vsphereVolume.
type VolumeSource = persistentvolumelabel.Source

// DefaultPersistentVolumeLabelSettings returns the settings to start from. They cover
// volumes of all sources; set Sources to the provider's own, because some clouds panic for
// others.
func DefaultPersistentVolumeLabelSettings() PersistentVolumeLabelSettings {
	return persistentvolumelabel.DefaultSettings()
}

// PersistentVolumeLabelWith is [PersistentVolumeLabel] with other settings. [New] reports
// invalid settings.
func PersistentVolumeLabelWith(settings PersistentVolumeLabelSettings) Webhook {
	if err := settings.Validate(); err != nil {
		return Webhook{problem: fmt.Errorf("persistentvolumelabel: %w", err)}
	}
	return Webhook{
		Name:       "persistentvolumelabel",
		Aliases:    []string{"pvl"},
		Definition: persistentvolumelabel.Definition(settings),
		New: func(d Dependencies) (admission.Handler, error) {
			labeler, err := labelerOf(d.Cloud)
			if err != nil {
				return nil, fmt.Errorf("%w: remove the webhook from --webhooks", err)
			}
			metrics, err := persistentvolumelabel.NewMetrics(d.Metrics, "webhook")
			if err != nil {
				return nil, err
			}
			webhooks, err := persistentvolumelabel.New(labeler, settings, metrics)
			if err != nil {
				return nil, err
			}
			return webhooks[0].Handler, nil
		},
		labels: &settings,
	}
}

func labelerOf(cloud cloudprovider.Interface) (cloudprovider.PVLabeler, error) {
	labeler, ok := cloud.(cloudprovider.PVLabeler)
	if !ok {
		return nil, fmt.Errorf("cloud provider %s does not implement PV labeling", cloud.ProviderName())
	}
	return labeler, nil
}

// labelController is the name of the controller in --controllers.
const labelController = "persistentvolumelabel-controller"

// The values of --persistentvolumelabel-controller.
const (
	labelsOff    = "off"
	labelsDryRun = "dry-run"
	labelsOn     = "on"
)

var labelModes = []string{labelsOff, labelsDryRun, labelsOn}

// labelsMissed is a controller of the cloud controller manager, which runs on the leader.
func (s *settings) labelsMissed(settings PersistentVolumeLabelSettings) app.ControllerInitFuncConstructor {
	return app.ControllerInitFuncConstructor{
		InitContext: app.ControllerInitContext{ClientName: labelController},
		Constructor: func(initial app.ControllerInitContext, completed *config.CompletedConfig, cloud cloudprovider.Interface) app.InitFunc {
			return func(ctx context.Context, _ genericcontrollermanager.ControllerContext) (controller.Interface, bool, error) {
				if s.labels == labelsOff {
					return nil, false, nil
				}
				labeler, err := labelerOf(cloud)
				if err != nil {
					return nil, false, fmt.Errorf("%w: omit --persistentvolumelabel-controller", err)
				}
				shown := newTee()
				metrics, err := persistentvolumelabel.NewMetrics(shown, "controller")
				if err != nil {
					return nil, false, err
				}
				c, err := persistentvolumelabel.NewController(persistentvolumelabel.ControllerOptions{
					Labeler: labeler, Settings: settings, Metrics: metrics,
					Volumes: completed.SharedInformers.Core().V1().PersistentVolumes(), Client: completed.ClientBuilder.ClientOrDie(initial.ClientName).CoreV1(),
					Recorder: completed.EventRecorder, Logger: slog.New(logr.ToSlogHandler(klog.FromContext(ctx))).With("controller", labelController),
					DryRun: s.labels == labelsDryRun,
				})
				if err != nil {
					shown.close()
					return nil, false, err
				}
				go func() {
					c.Run(ctx)
					shown.close()
				}()
				return nil, true, nil
			}
		},
	}
}

// addLabelController adds the controller if its webhook is registered.
func (c *command) addLabelController(add func(name string, constructor app.ControllerInitFuncConstructor)) {
	for _, w := range c.registry.webhooks {
		if w.labels != nil {
			add(labelController, c.settings.labelsMissed(*w.labels))
		}
	}
}
