// SPDX-License-Identifier: Apache-2.0

// Package persistentvolumelabel labels persistent volumes with the zone and region of
// their disk when they are created or updated without these labels, and restricts them
// to nodes there. Its [Controller] handles volumes that are never updated. It does what
// the admission plugin PersistentVolumeLabel did in kube-apiserver until 1.30, for EBS,
// GCE PD, Azure Disk, Cinder and vSphere volumes. The labels come from a cloud
// provider.
//
// It runs inside a cloud controller manager: see package cloud.
package persistentvolumelabel

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// Identifiers of the webhook in the API.
const (
	Name = "persistentvolumelabel.sallyport.io"
	Path = "/mutate-persistentvolumelabel"
)

// Labeler is a cloud provider that knows the labels of volumes, a PVLabeler in
// k8s.io/cloud-provider. Without labels and error, the volume stays unchanged; an error
// refuses it. The Labeler owns the volume.
type Labeler interface {
	GetLabelsForVolume(ctx context.Context, pv *corev1.PersistentVolume) (map[string]string, error)
}

// New defines the webhook. The error reports all problems in the settings and a missing
// labeler.
//
// Answers of the labeler are cached for a short time, and concurrent questions for the
// same volume share one answer. Metrics may be nil.
func New(labeler Labeler, settings Settings, metrics *Metrics) ([]admission.Webhook, error) {
	err := settings.Validate()
	if labeler == nil {
		err = errors.Join(err, errors.New("a labeler is required: the cloud provider"))
	}
	if err != nil {
		return nil, err
	}
	webhook := Definition(settings)
	webhook.Handler = &handler{sources: settings.Sources, lookups: newLookups(labeler, settings, metrics)}
	return []admission.Webhook{webhook}, nil
}

// Definition returns the webhook without its handler, for registration before there is
// a cloud provider. The settings must be valid.
func Definition(settings Settings) admission.Webhook {
	cluster := admissionregistrationv1.ClusterScope
	condition := ""
	for _, source := range settings.Sources {
		if condition != "" {
			condition += " || "
		}
		condition += "has(object.spec." + string(source) + ")"
	}
	return admission.Webhook{
		Name: Name,
		Path: Path,
		Type: admission.TypeMutating,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource.Resource}, Scope: &cluster,
			},
		}},
		// Volumes of other sources do not concern the cloud and must not wait for it.
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "volume-of-the-provider", Expression: condition},
			{Name: "new-or-without-labels", Expression: newOrIncomplete()},
		},
		// An unavailable cloud must not block all volumes.
		FailurePolicy:  admissionregistrationv1.Ignore,
		TimeoutSeconds: 10,
	}
}

// newOrIncomplete is a CEL expression equivalent to [volume.complete]: updates of
// complete volumes and of volumes being deleted do not wait for the cloud.
func newOrIncomplete() string {
	family := func(keys []string) string {
		return "'" + keys[0] + "' in object.metadata.labels && '" + keys[1] + "' in object.metadata.labels"
	}
	return "request.operation == 'CREATE' || !has(object.metadata.deletionTimestamp) && !(has(object.spec.nodeAffinity) && has(object.metadata.labels) && (" +
		family(topologyKeys[:2]) + " || " + family(topologyKeys[2:]) + "))"
}

// queried names a volume in messages, in the admission plugin's words.
func queried(v *volume) string { return fmt.Sprintf("%s %s", v.source.title(), v.id) }
