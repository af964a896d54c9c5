// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// defaultHistoryLimit is the default of spec.revisionHistoryLimit, as [v1.StatefulSet] has
// no lower one than people need to undo a few changes.
const defaultHistoryLimit = 5

// history knows the revisions of all objects, without their meanings, which are read where
// they are used. Only the leader writes revisions, so it lists them once, and again those of
// an object for which they have changed.
type history struct {
	*revision.Client

	mu    sync.Mutex
	known map[key][]*revision.Record
	stale map[key]bool
}

func keyOfRecord(r *revision.Record) key { return key{Namespace: r.Owner.Namespace, Name: r.OwnerName} }

// readAll lists the revisions of the cluster.
func (h *history) readAll(ctx context.Context) error {
	known := map[key][]*revision.Record{}
	err := h.Each(ctx, func(r *revision.Record) {
		if r.OwnerName != "" {
			known[keyOfRecord(r)] = append(known[keyOfRecord(r)], r.WithoutMeaning())
		}
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.stale = known, map[key]bool{}
	return nil
}

// changed has the revisions of an object listed again.
func (h *history) changed(k key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stale[k] = true
}

// forget forgets the revisions of a deleted object, which the garbage collector deletes.
func (h *history) forget(k key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, k)
	delete(h.stale, k)
}

// of returns the revisions of an object, as [revision.Of] does.
func (h *history) of(ctx context.Context, c *plan.Plan) (usable, refused []*revision.Record, err error) {
	k := c.Identity().NamespacedName
	h.mu.Lock()
	all, stale := h.known[k], h.stale[k]
	delete(h.stale, k)
	h.mu.Unlock()
	if stale {
		all = nil
		if err := h.EachOf(ctx, k.Namespace, k.Name, func(r *revision.Record) {
			if keyOfRecord(r) == k {
				all = append(all, r.WithoutMeaning())
			}
		}); err != nil {
			h.changed(k)
			return nil, nil, err
		}
		h.mu.Lock()
		h.known[k] = all
		h.mu.Unlock()
	}
	usable, refused = revision.Of(ownerOf(c), all)
	return usable, refused, nil
}

// put replaces what is known of one revision; now is nil if it was deleted.
func (h *history) put(k key, is types.UID, now *revision.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(h.known[k]), func(r *revision.Record) bool { return r.Identity().UID == is })
	if now != nil {
		all = append(all, now.WithoutMeaning())
	}
	h.known[k] = all
}

func ownerOf(c *plan.Plan) revision.Owner {
	is := c.Identity()
	return revision.Owner{Namespace: is.Namespace, UID: is.UID}
}

func ownerReference(c *plan.Plan) *metav1.OwnerReference {
	ref := referenceTo(c)
	return &metav1.OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Controller: new(true)}
}

// past are the usable revisions of an object while it is reconciled, the latest first.
type past struct {
	*history
	of  *plan.Plan
	all []*revision.Record
}

// named returns the revision with that name, or nil.
func (p *past) named(name string) *revision.Record {
	if i := slices.IndexFunc(p.all, func(r *revision.Record) bool { return r.Name == name }); i >= 0 {
		return p.all[i]
	}
	return nil
}

// next is the number of the next revision.
func (p *past) next() int64 {
	if len(p.all) == 0 {
		return 1
	}
	return min(p.all[0].Number+1, revision.MaxNumber)
}

// patch changes a revision.
func (p *past) patch(ctx context.Context, r *revision.Record, change revision.Change) (*revision.Record, error) {
	now, err := p.Patch(ctx, r, change)
	if err == nil && now.Problem != nil {
		err = now.Problem
	}
	if err != nil {
		p.changed(p.of.Identity().NamespacedName) // it has changed or is gone
		return nil, fmt.Errorf("change the %s: %w", r, err)
	}
	p.replace(r.Identity().UID, now)
	return now, nil
}

func (p *past) replace(is types.UID, now *revision.Record) {
	p.put(p.of.Identity().NamespacedName, is, now)
	p.all = slices.DeleteFunc(slices.Clone(p.all), func(r *revision.Record) bool { return r.Identity().UID == is })
	if now != nil {
		p.all = append(p.all, now)
	}
	slices.SortFunc(p.all, revision.Compare)
}

// ensure returns the revision with this meaning, and creates it if there is none.
func (p *past) ensure(ctx context.Context, meaning []byte) (*revision.Record, error) {
	if r := p.named(revision.NameOf(meaning)); r != nil {
		return r, nil
	}
	o := revision.New(ownerReference(p.of), p.of.Namespace(), meaning, p.next())
	now, err := p.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		// The response to an earlier request was lost, a server created it that led until
		// now, or it belongs to a deleted object or is not what it says: then it stays.
		now, err = p.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		if err == nil && (now.Problem != nil || now.Owner != ownerOf(p.of)) {
			o.Name, o.GenerateName = "", o.Name+"-"
			now, err = p.Create(ctx, o)
		}
	}
	if err == nil && now.Problem != nil {
		err = now.Problem
	}
	if err != nil {
		return nil, fmt.Errorf("record revision %s: %w", revision.Short(revision.NameOf(meaning)), err)
	}
	p.replace(now.Identity().UID, now)
	return now, nil
}

// latest gives the current revision the highest number: it may be a rollback.
func (p *past) latest(ctx context.Context, current *revision.Record) (*revision.Record, error) {
	if p.all[0] == current || current.Number == revision.MaxNumber {
		return current, nil
	}
	return p.patch(ctx, current, revision.Change{Number: p.next()})
}

// markOnly makes one revision the stable one, or none, and clears the state of rollouts over
// others. The new one is marked first: of two, the latest counts.
func (p *past) markOnly(ctx context.Context, stable *revision.Record) (*revision.Record, error) {
	if stable != nil && !stable.Stable {
		var err error
		if stable, err = p.patch(ctx, stable, revision.Change{Stable: new(true), Rollout: &sallyportv1alpha1.RevisionRollout{}}); err != nil {
			return nil, err
		}
	}
	for _, r := range p.all {
		if r.Stable && (stable == nil || r.Identity().UID != stable.Identity().UID) {
			if _, err := p.patch(ctx, r, revision.Change{Stable: new(false), Rollout: &sallyportv1alpha1.RevisionRollout{}}); err != nil {
				return nil, err
			}
		}
	}
	return stable, nil
}

// prune deletes the oldest revisions beyond the limit. The current revision, and the stable
// one of a rollout, do not count.
func (p *past) prune(ctx context.Context, current, stable *revision.Record, limit int) error {
	earlier := 0
	for _, r := range p.all {
		if r.Identity().UID == current.Identity().UID || stable != nil && r.Identity().UID == stable.Identity().UID {
			continue
		}
		if earlier++; earlier <= limit {
			continue
		}
		if err := p.Delete(ctx, r); err != nil && !apierrors.IsNotFound(err) {
			p.changed(p.of.Identity().NamespacedName)
			return fmt.Errorf("delete the %s: %w", r, err)
		}
		p.replace(r.Identity().UID, nil)
	}
	return nil
}

// record records the current revision, determines the stable one if there is a rollout, and
// removes revisions beyond the limit.
func (r *roller) record(ctx context.Context, c *plan.Plan, limit int) (p *past, current, stable *revision.Record, err error) {
	usable, refused, err := r.history.of(ctx, c)
	if err != nil {
		return nil, nil, nil, err
	}
	r.tellRefused(c, refused)
	p = &past{r.history, c, usable}
	if c.Rolls() != nil {
		// Before the current one is recorded: it may not be in the history of the next leader.
		if stable = revision.StableAmong(p.all); stable == nil {
			stable, err = r.settle(ctx, p)
		}
		if err == nil {
			stable, err = p.markOnly(ctx, stable)
		}
	}
	if err == nil {
		current, err = p.ensure(ctx, c.Meaning())
	}
	if err == nil {
		current, err = p.latest(ctx, current)
	}
	if err == nil && c.Rolls() == nil {
		_, err = p.markOnly(ctx, nil)
	}
	if err == nil && stable != nil {
		stable = p.named(stable.Name) // it may be the current one, which has another number
	}
	if err == nil {
		err = p.prune(ctx, current, stable, limit)
	}
	return p, current, stable, err
}

// settle returns the revision from which a rollout starts, of an object that has had none
// until now, or whose stable revision somebody has deleted.
func (r *roller) settle(ctx context.Context, p *past) (*revision.Record, error) {
	before, inProgress := p.of.RolledOut()
	switch {
	case inProgress && before != nil:
		return p.ensure(ctx, before.Meaning())
	case inProgress && len(p.all) > 0:
		return p.all[0], nil
	case inProgress:
		r.recorder.Eventf(referenceTo(p.of), nil, corev1.EventTypeWarning, "RevisionNotFound", "Roll",
			"the revision before is not recorded: %s applies to all new pods", revision.Short(p.of.Revision()))
	}
	return p.ensure(ctx, p.of.Meaning())
}

// maxToldRefused limits the events about revisions of one object.
const maxToldRefused = 3

// maxTold limits what is remembered of them.
const maxTold = 10_000

// tellRefused records an event for revisions that claim to be the object's and are ignored.
func (r *roller) tellRefused(c *plan.Plan, refused []*revision.Record) {
	for i, one := range refused {
		r.mu.Lock()
		if len(r.told) > maxTold {
			clear(r.told)
		}
		told := r.told[one.Identity().UID] == one.Identity().ResourceVersion
		r.told[one.Identity().UID] = one.Identity().ResourceVersion
		r.mu.Unlock()
		if !told && i < maxToldRefused {
			r.recorder.Eventf(referenceTo(c), nil, corev1.EventTypeWarning, "RevisionIgnored", "Roll",
				"%s is ignored: %v. Delete it if it is not needed", one, one.Problem)
		}
	}
}
