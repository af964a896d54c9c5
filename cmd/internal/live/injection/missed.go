// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// tellMissed returns the findings about a pod, with the state Missed for the objects that
// were as they are now when the pod was created, if the webhook has not decided about it.
func (f *fleet) tellMissed(pod *metav1.ObjectMeta, findings []drift.Finding) []drift.Finding {
	if _, decided := pod.Annotations[meta.DecisionsAnnotation]; decided {
		return findings
	}
	findings = slices.Clone(findings) // pods share them
	for i := range findings {
		if d := f.known[pod.Namespace].byTitle[findings[i].Title]; findings[i].State == drift.Missing && d != nil && !pod.CreationTimestamp.Time.Before(d.changedAt()) {
			findings[i].State = drift.Missed
		}
	}
	return findings
}

// changedAt returns when the object was last written, ignoring its status.
func (d *Default) changedAt() time.Time {
	at := d.CreationTimestamp.Time
	for _, m := range d.ManagedFields {
		if m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}
