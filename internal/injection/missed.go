// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault/drift"
)

// A MissedPod passed injection although PodDefaults apply to it.
type MissedPod struct {
	Namespace   string   `json:"namespace"`
	Name        string   `json:"name"`
	PodDefaults []string `json:"podDefaults"`
}

// FindMissed lists the pods of a namespace, or of all if it is empty, that passed
// injection. Pods older than the last change of the objects that would now inject are
// left out, and counted on notes.
func FindMissed(ctx context.Context, c *cluster.Cluster, namespace string, notes io.Writer) ([]MissedPod, error) {
	f, err := newFleet(ctx, c, namespace, notes)
	if err != nil {
		return nil, err
	}
	if !f.asked.registered {
		manifest.Note(notes, "note: no webhook %s is registered: pods are listed whatever the selectors of its configuration were", poddefault.Name)
	}
	found, older := []MissedPod{}, 0
	err = f.eachPod(ctx, namespace, "", func(pod *metav1.ObjectMeta) error {
		missed, changed, err := f.missed(ctx, pod)
		switch {
		case err != nil:
			return err
		case len(missed) > 0:
			found = append(found, MissedPod{pod.Namespace, pod.Name, missed})
		case changed:
			older++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b MissedPod) int { return compareNames(a.Namespace, a.Name, b.Namespace, b.Name) })
	if older > 0 {
		manifest.Note(notes, "note: %s older than what would inject now, and not listed", cli.Count(older, "pod is", "pods are"))
	}
	return found, nil
}

// PrintMissed prints a table, or nothing without missed pods.
func PrintMissed(out io.Writer, found []MissedPod) error {
	if len(found) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tPODDEFAULTS")
	for _, pod := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\n", pod.Namespace, pod.Name, manifest.PrintableLine(strings.Join(pod.PodDefaults, ",")))
	}
	return w.Flush()
}

// missed returns the names, as in the decisions annotation, of the objects for a pod
// that the webhook has not considered. Changed is set if any object for it changed after
// the pod's creation.
func (f *fleet) missed(ctx context.Context, pod *metav1.ObjectMeta) (missed []string, changed bool, err error) {
	if _, decided := pod.Annotations[poddefault.DecisionsAnnotation]; decided {
		return nil, false, nil
	}
	findings, err := f.judge(ctx, pod)
	for _, finding := range findings {
		switch {
		case finding.State != drift.Missing:
		case pod.CreationTimestamp.Time.Before(f.known[pod.Namespace].byTitle[finding.Title].changedAt()):
			changed = true
		default:
			missed = append(missed, finding.Object.Decision())
		}
	}
	return missed, changed, err
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
