// SPDX-License-Identifier: Apache-2.0

// Package persistentvolumelabel labels persistent volumes, while they are created or
// updated without labels, with the zone and region of their disk, and has them used on nodes
// there only. Those that nobody updates are for its [Controller]. It does what
// the admission plugin PersistentVolumeLabel did, which kube-apiserver had until 1.30,
// for EBS, GCE PD, Azure Disk, Cinder and vSphere volumes; a cloud provider knows the
// labels.
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

// The webhook as the API server knows it.
const (
	Name = "persistentvolumelabel.sallyport.io"
	Path = "/mutate-persistentvolumelabel"
)

// Labeler is a cloud provider that knows the labels of volumes: what
// k8s.io/cloud-provider calls a PVLabeler. No labels and no error mean that the volume
// stays as it is; an error refuses it. The volume is the Labeler's own.
type Labeler interface {
	GetLabelsForVolume(ctx context.Context, pv *corev1.PersistentVolume) (map[string]string, error)
}

// New defines the webhook. The error reports all problems of the settings, and says if the
// labeler is missing.
//
// What the labeler says is remembered for a short while, and questions for the same
// volume that come meanwhile wait for one answer. Metrics may be nil.
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

// Definition is the webhook without its handler, for those who must register it before
// there is a cloud provider. The settings are valid.
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
		// Volumes of others are none of the cloud's business, and must not wait for it.
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "volume-of-the-provider", Expression: condition},
			{Name: "new-or-without-labels", Expression: newOrIncomplete()},
		},
		// A cloud that does not answer must not stop volumes of a cluster.
		FailurePolicy:  admissionregistrationv1.Ignore,
		TimeoutSeconds: 10,
	}
}

// newOrIncomplete is a CEL expression that says what [volume.complete] says: an update of a
// volume that has all, or that goes, waits for no cloud.
func newOrIncomplete() string {
	family := func(keys []string) string {
		return "'" + keys[0] + "' in object.metadata.labels && '" + keys[1] + "' in object.metadata.labels"
	}
	return "request.operation == 'CREATE' || !has(object.metadata.deletionTimestamp) && !(has(object.spec.nodeAffinity) && has(object.metadata.labels) && (" +
		family(topologyKeys[:2]) + " || " + family(topologyKeys[2:]) + "))"
}

// queried names a volume in messages, in the words of the admission plugin.
func queried(v *volume) string { return fmt.Sprintf("%s %s", v.source.title(), v.id) }
