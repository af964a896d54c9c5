// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// Missed are the names of what is for a pod that nobody has decided on, as the annotation
// for decisions has them. Nothing was added to such a pod: its labels are its own. Changed
// says that there is something, and the pod is older than its last change.
func (k *Defaults) Missed(pod *manifest.Object) (missed []string, changed bool) {
	_, mirror := pod.Annotations[poddefault.MirrorAnnotation]
	if _, decided := pod.Annotations[poddefault.DecisionsAnnotation]; decided || mirror {
		return nil, false
	}
	for _, d := range k.all {
		excluded := pod.Annotations[poddefault.ExcludeAnnotation] == "true" && d.allowExclude
		switch {
		case excluded, d.compiled.Problem() != nil, d.spec.Mode == kubeflowv1alpha1.ModeAudit, d.notFor(k, labels.Set(pod.Labels)) != "":
		case pod.CreationTimestamp.Time.Before(d.changedAt()):
			changed = true
		case d.namespaces != nil:
			missed = append(missed, "cluster/"+d.Name)
		default:
			missed = append(missed, d.Name)
		}
	}
	return missed, changed
}

// changedAt is when somebody wrote the object the last time; its status does not count.
func (d *Default) changedAt() time.Time {
	at := d.CreationTimestamp.Time
	for _, m := range d.ManagedFields {
		if m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}
