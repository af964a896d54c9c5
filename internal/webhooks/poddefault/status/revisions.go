// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// defaultHistoryLimit is the default of spec.revisionHistoryLimit, as [v1.StatefulSet] has
// no lower one than people need to undo a few changes.
const defaultHistoryLimit = 5

// A revision is what the leader knows of a ControllerRevision.
type revision struct {
	name   string // of the ControllerRevision
	hash   string
	number int64
	owner  types.UID
}

// history knows the revisions of all objects. Only the leader writes them, so it lists
// them once.
type history map[key][]revision

// readHistory lists the ControllerRevisions of Sallyport.
func (r *roller) readHistory(ctx context.Context) (history, error) {
	out := history{}
	options := metav1.ListOptions{LabelSelector: poddefault.RevisionSelector, Limit: 500}
	for {
		page, err := r.clients.AppsV1().ControllerRevisions(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list ControllerRevisions: %w", err)
		}
		for i := range page.Items {
			if k, one, ok := read(&page.Items[i]); ok {
				out[k] = append(out[k], one)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

func read(o *appsv1.ControllerRevision) (key, revision, bool) {
	owner := metav1.GetControllerOf(o)
	hash := o.Labels[poddefault.RevisionLabel]
	if owner == nil || hash == "" {
		return key{}, revision{}, false
	}
	k := key{o.Namespace, owner.Name}
	if o.Labels[poddefault.ClusterOwnerLabel] != "" {
		k.namespace = ""
	}
	return k, revision{o.Name, hash, o.Revision, owner.UID}, true
}

// record writes the object's current revision, unless it is the latest one in the history,
// and removes revisions beyond the limit.
func (r *roller) record(ctx context.Context, k key, c *poddefault.Compiled, spec *rolledSpec) error {
	namespace := k.namespace
	if c.Cluster() {
		namespace = r.namespace
	}
	if c.Revision() == "" || namespace == "" {
		return nil
	}
	all := r.historyOf(k, c)
	client := r.clients.AppsV1().ControllerRevisions(namespace)
	last := int64(0)
	for _, one := range all {
		last = max(last, one.number)
	}
	i := slices.IndexFunc(all, func(one revision) bool { return one.hash == c.Revision() })
	if i < 0 {
		one, err := r.create(ctx, newRevision(namespace, c, last+1))
		if err != nil {
			if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return nil
			}
			return fmt.Errorf("create the ControllerRevision %s/%s: %w", namespace, poddefault.RevisionName(c), err)
		}
		all, i = append(all, one), len(all)
	}
	if all[i].number < last { // a rollback
		patch := fmt.Appendf(nil, `{"revision":%d}`, last+1)
		if _, err := client.Patch(ctx, all[i].name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			if apierrors.IsNotFound(err) { // someone has deleted it
				r.setHistory(k, slices.Delete(all, i, i+1))
			}
			return fmt.Errorf("renumber the ControllerRevision %s/%s: %w", namespace, all[i].name, err)
		}
		all[i].number = last + 1
	}
	all, err := r.prune(ctx, namespace, c, all, spec.limit())
	r.setHistory(k, all)
	return err
}

// create creates a ControllerRevision. It accepts one that is there already, of the same owner and
// spec: the response to an earlier request was lost, or a server created it that led until now.
func (r *roller) create(ctx context.Context, o *appsv1.ControllerRevision) (revision, error) {
	client := r.clients.AppsV1().ControllerRevisions(o.Namespace)
	_, err := client.Create(ctx, o, metav1.CreateOptions{})
	_, one, _ := read(o)
	if !apierrors.IsAlreadyExists(err) {
		return one, err
	}
	existing, getErr := client.Get(ctx, o.Name, metav1.GetOptions{})
	if getErr != nil { // also if it is gone by now, which is no NotFound: the next try creates it
		return revision{}, fmt.Errorf("%w, and reading it failed: %w", err, getErr)
	}
	_, found, ok := read(existing)
	if !ok || found.owner != one.owner || found.hash != one.hash {
		return revision{}, fmt.Errorf("%w, and belongs to another object: delete it, unless it is about to be garbage collected", err)
	}
	return found, nil
}

// prune deletes the oldest revisions beyond the limit. The current revision, and the
// stable one of a rollout, do not count.
func (r *roller) prune(ctx context.Context, namespace string, c *poddefault.Compiled, all []revision, limit int) ([]revision, error) {
	slices.SortStableFunc(all, func(a, b revision) int { return cmp.Compare(b.number, a.number) })
	stable := ""
	if rolled := c.Status().Rollout; rolled != nil {
		stable = rolled.StableRevision
	}
	var remaining []revision
	earlier := 0
	for i, one := range all {
		if one.hash != c.Revision() && one.hash != stable {
			if earlier++; earlier > limit {
				err := r.clients.AppsV1().ControllerRevisions(namespace).Delete(ctx, one.name, metav1.DeleteOptions{})
				if err != nil && !apierrors.IsNotFound(err) {
					return append(remaining, all[i:]...), fmt.Errorf("delete the ControllerRevision %s/%s: %w", namespace, one.name, err)
				}
				continue
			}
		}
		remaining = append(remaining, one)
	}
	return remaining, nil
}

// historyOf returns the revisions of the object, without those of a deleted object of the
// same name.
func (r *roller) historyOf(k key, c *poddefault.Compiled) []revision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.history[k]), func(one revision) bool { return one.owner != c.Identity().UID })
}

func (r *roller) setHistory(k key, all []revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history[k] = all
}

// forget forgets the revisions of a deleted object, which the garbage collector deletes.
func (r *roller) forget(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.history, k)
}

func newRevision(namespace string, c *poddefault.Compiled, number int64) *appsv1.ControllerRevision {
	o := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: poddefault.RevisionName(c), Labels: poddefault.RevisionLabels(c),
			OwnerReferences: []metav1.OwnerReference{ownerOf(c)},
		},
		Revision: number,
	}
	o.Data = runtime.RawExtension{Raw: fmt.Appendf(nil, `{"spec":%s}`, c.Meaning())}
	return o
}

func ownerOf(c *poddefault.Compiled) metav1.OwnerReference {
	ref := referenceTo(c)
	return metav1.OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Controller: new(true)}
}

// recorded returns the meaning of a revision, or nil if there is none.
func (r *roller) recorded(ctx context.Context, k key, c *poddefault.Compiled, hash string) ([]byte, error) {
	namespace := k.namespace
	if c.Cluster() {
		namespace = r.namespace
	}
	for _, one := range r.historyOf(k, c) {
		if one.hash != hash {
			continue
		}
		o, err := r.clients.AppsV1().ControllerRevisions(namespace).Get(ctx, one.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the ControllerRevision %s/%s: %w", namespace, one.name, err)
		}
		var data struct {
			Spec json.RawMessage `json:"spec"`
		}
		if json.Unmarshal(o.Data.Raw, &data) != nil || poddefault.RevisionOf(data.Spec) != hash {
			return nil, nil
		}
		return data.Spec, nil
	}
	return nil, nil
}
