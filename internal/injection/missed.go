// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/inspect"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/internal/workload"
	"github.com/sallyport-io/sallyport/lint"
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
	pods, err := c.List(ctx, workload.Kinds()[0].Path(namespace))
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	asked, err := newAsked(ctx, c)
	if err != nil {
		return nil, err
	}
	if !asked.registered {
		manifest.Note(notes, "note: no webhook %s is registered: pods are listed whatever the selectors of its configuration were", poddefault.Name)
	}
	trial := Trial{Cluster: c, Notes: notes}
	found, older := []MissedPod{}, 0
	for _, pod := range pods {
		defaults, err := trial.defaults(ctx, pod.Namespace)
		if err != nil {
			return nil, err
		}
		missed, changed := defaults.missed(pod)
		if len(missed) == 0 && !changed {
			continue
		}
		if in, err := asked.about(ctx, pod); err != nil {
			return nil, err
		} else if !in {
			continue
		}
		if len(missed) == 0 {
			older++
			continue
		}
		found = append(found, MissedPod{pod.Namespace, pod.Name, missed})
	}
	slices.SortFunc(found, func(a, b MissedPod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
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
		fmt.Fprintf(w, "%s\t%s\t%s\n", pod.Namespace, pod.Name, manifest.Printable(strings.Join(pod.PodDefaults, ",")))
	}
	return w.Flush()
}

// asked reports which pods the API server sends to the PodDefault webhook.
type asked struct {
	admission  *inspect.Admission
	registered bool
}

func newAsked(ctx context.Context, c *cluster.Cluster) (*asked, error) {
	admission, err := inspect.AdmissionOfCluster(ctx, c, []schema.GroupVersionKind{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")})
	if err != nil {
		return nil, err
	}
	a := &asked{admission: admission}
	links, err := a.links(ctx, lint.Request{})
	a.registered = len(links) > 0
	return a, err
}

// links returns the webhook's entries in the chain, usually one.
func (a *asked) links(ctx context.Context, r lint.Request) ([]lint.Link, error) {
	links, err := a.admission.Links(ctx, r)
	return slices.DeleteFunc(links, func(link lint.Link) bool { return !strings.HasSuffix(link.Name, "/"+poddefault.Name) }), err
}

func (a *asked) about(ctx context.Context, pod *manifest.Object) (bool, error) {
	if !a.registered {
		return true, nil
	}
	var value map[string]any
	if err := utiljson.Unmarshal(pod.Raw, &value); err != nil {
		return false, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	links, err := a.links(ctx, lint.Request{
		Operation: admissionregistrationv1.Create, Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: corev1.SchemeGroupVersion.WithKind("Pod"),
		Namespace: pod.Namespace, Name: pod.Name, Object: value,
	})
	return slices.ContainsFunc(links, func(link lint.Link) bool { return link.Answer != lint.Out }), err
}

// missed returns the names, as in the decisions annotation, of the objects for a pod
// that the webhook has not considered. Nothing was added to such a pod, so all labels
// are its own. Changed is set if any object for it changed after the pod's creation.
func (k *Defaults) missed(pod *manifest.Object) (missed []string, changed bool) {
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
