// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metadataclient "k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// Fresh implements [match.Source]. It lists only metadata, one list at a time per
// namespace, shared by all calls that arrived before the list began. It reads only
// objects that differ from the watch. It leaves the call the time for the merge: see
// mergeTime. Labels of namespaces and exemptions come from the watch.
func (w *Watcher) Fresh(ctx context.Context, namespace string) (match.Source, error) {
	if err := w.Ready(); err != nil {
		return nil, admission.Unavailable(err, time.Second)
	}
	return w.refresh(ctx, namespace)
}

// mergeTime is the part of a call that is kept for the merge; no more than a tenth of the
// time that is left.
const mergeTime = 100 * time.Millisecond

func (w *Watcher) refresh(ctx context.Context, namespace string) (match.Source, error) {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left-min(mergeTime, left/10))
		defer cancel()
	}
	unavailable := func(err error) error {
		return admission.Unavailable(fmt.Errorf("cannot tell whether PodDefaults are up to date: %w", err), time.Second)
	}
	type result struct {
		corrections []correction
		err         error
	}
	cluster := make(chan result, 1)
	go func() {
		corrections, err := w.lists.wait(ctx, "")
		cluster <- result{corrections, err}
	}()
	own, err := w.lists.wait(ctx, namespace)
	if err != nil {
		return nil, unavailable(err)
	}
	all := <-cluster
	if all.err != nil {
		return nil, unavailable(all.err)
	}
	if len(own)+len(all.corrections) == 0 {
		return &Index{plans: w.plans}, nil
	}
	return correct(w.plans, slices.Concat(own, all.corrections)), nil
}

// catchUp lists the objects of a namespace and reads those that differ from the watch.
func (w *Watcher) catchUp(ctx context.Context, namespace string) ([]correction, error) {
	listed, err := w.lists.list(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var out []correction
	known := w.versions(namespace)
	for name, version := range known {
		if _, there := listed[name]; !there {
			out = append(out, correction{title: version.object.String()})
		}
	}
	for name, version := range listed {
		if have, ok := known[name]; ok && have.uid == version.uid && have.generation == version.generation {
			continue
		}
		c, err := w.lists.read(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		have := known[name]
		if c != nil {
			c.Stage(w.Revisions, have.object)
		}
		fix := correction{object: c}
		if have.object != nil {
			fix.title = have.object.String()
		}
		out = append(out, fix)
	}
	if w.secretWatch == nil || namespace == "" {
		return out, nil
	}
	all, err := w.secretWatch.list(ctx, namespace)
	switch {
	case apierrors.IsForbidden(err): // the index says so where it matters
	case err != nil:
		return nil, err
	case !w.secrets.same(namespace, all):
		out = append(out, correction{namespace: namespace, secrets: all})
	}
	return out, nil
}

// A correction replaces the object with this title, or the Secrets of a namespace.
type correction struct {
	title  string     // empty: there was none
	object *plan.Plan // nil: there is none

	namespace string
	secrets   plan.Secrets // nil: the correction is of an object
}

// corrected are plans with corrections.
type corrected struct {
	*plans
	stale map[string]bool            // titles of objects to ignore
	fresh map[string]*namespaceIndex // their replacements
	// secrets are those of the plans, unless there are newer ones.
	secrets *secretIndex
}

func correct(all *plans, corrections []correction) *corrected {
	s := &corrected{plans: all, stale: make(map[string]bool, len(corrections)), secrets: all.secrets}
	var objects []*plan.Plan
	for _, fix := range corrections {
		if fix.secrets != nil {
			s.secrets = newSecretIndex()
			s.secrets.of(fix.namespace).secrets = fix.secrets
			continue
		}
		s.stale[fix.title] = true
		if fix.object != nil {
			s.stale[fix.object.String()] = true
			objects = append(objects, fix.object)
		}
	}
	s.fresh = indexed(objects)
	return s
}

// Select implements [match.Source].
func (s *corrected) Select(_ context.Context, namespace string, pod podmeta.Labels) ([]*plan.Plan, error) {
	return s.both(func(from map[string]*namespaceIndex) ([]*plan.Plan, error) {
		return s.selected(from, namespace, pod)
	})
}

// both returns what is found in the plans, corrected, in order of application.
func (s *corrected) both(find func(from map[string]*namespaceIndex) ([]*plan.Plan, error)) ([]*plan.Plan, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := find(s.namespaces)
	if err != nil {
		return nil, err
	}
	more, err := find(s.fresh)
	if err != nil {
		return nil, err
	}
	found = append(slices.DeleteFunc(found, func(c *plan.Plan) bool { return s.stale[c.String()] }), more...)
	slices.SortFunc(found, plan.InOrder)
	return found, nil
}

// Named implements [match.Source].
func (s *corrected) Named(_ context.Context, namespace string, decisions []string) ([]*plan.Plan, error) {
	return s.both(func(from map[string]*namespaceIndex) ([]*plan.Plan, error) {
		return s.named(from, namespace, decisions)
	})
}

// Fresh implements [match.Source].
func (s *corrected) Fresh(context.Context, string) (match.Source, error) { return s, nil }

// Connect implements [match.Source].
func (s *corrected) Connect(namespace string, objects []*plan.Plan) error {
	return s.secrets.connect(namespace, objects)
}

// A version identifies a state of an object's spec by its generation. The
// resourceVersion also changes with the status.
type version struct {
	uid        types.UID
	generation int64
	object     *plan.Plan // nil in a list
}

// versions returns the versions of all objects of a namespace by name, or of the
// ClusterPodDefaults for the empty namespace.
func (p *plans) versions(namespace string) map[string]version {
	p.mu.RLock()
	defer p.mu.RUnlock()
	ns := p.namespaces[namespace]
	if ns == nil {
		return nil
	}
	out := make(map[string]version, len(ns.objects))
	for name, f := range ns.objects {
		out[name] = version{f.UID, f.Generation(), f.Plan}
	}
	return out
}

// lists makes the list requests, of which each namespace has one at a time.
type lists struct {
	catchUp              func(ctx context.Context, namespace string) ([]correction, error)
	metadata             metadataclient.Interface
	podDefaults, cluster rest.Interface

	mu            sync.Mutex
	running, next map[string]*round // by namespace; the next one begins when the running one ends
}

func newLists(catchUp func(context.Context, string) ([]correction, error)) *lists {
	return &lists{catchUp: catchUp, running: map[string]*round{}, next: map[string]*round{}}
}

// pageSize is the limit of a list request.
const pageSize = 5000

// list reads the latest state, without a resourceVersion.
func (l *lists) list(ctx context.Context, namespace string) (map[string]version, error) {
	out := map[string]version{}
	client := l.metadata.Resource(kubeflowv1alpha1.Resource(kubeflowv1alpha1.PodDefaultResource)).Namespace(namespace)
	if namespace == "" {
		client = l.metadata.Resource(sallyportv1alpha1.Resource(sallyportv1alpha1.ClusterPodDefaultResource))
	}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.List(ctx, options)
		if namespace == "" && apierrors.IsNotFound(err) { // the CRD is not installed
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			md := &page.Items[i]
			out[md.Name] = version{uid: md.UID, generation: md.Generation}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

// read reads one object with a list request, so that the list right is sufficient. It
// returns nil if the object is gone.
func (l *lists) read(ctx context.Context, namespace, name string) (*plan.Plan, error) {
	selector := "metadata.name=" + name
	if namespace == "" {
		list := &sallyportv1alpha1.ClusterPodDefaultList{}
		err := l.cluster.Get().Resource(sallyportv1alpha1.ClusterPodDefaultResource).Param("fieldSelector", selector).Do(ctx).Into(list)
		if err != nil || len(list.Items) == 0 {
			return nil, err
		}
		return plan.PackCluster(&list.Items[0], nil, nil), nil
	}
	list := &kubeflowv1alpha1.PodDefaultList{}
	err := l.podDefaults.Get().Namespace(namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Param("fieldSelector", selector).Do(ctx).Into(list)
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return plan.Pack(&list.Items[0], nil, nil), nil
}

// A round is one list request and the reads that follow from it.
type round struct {
	ctx         context.Context // of the waiting call that has the most time
	done        chan struct{}
	corrections []correction
	err         error
}

// wait returns the result of a list request for the namespace that began after the call.
func (l *lists) wait(ctx context.Context, namespace string) ([]correction, error) {
	for {
		r := l.join(ctx, namespace)
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// The call that made the request may have been canceled, which must not fail this one.
		if r.err == nil || r.ctx.Err() == nil || ctx.Err() != nil {
			return r.corrections, r.err
		}
	}
}

// join returns the round that has not begun, which exists while calls wait for one.
func (l *lists) join(ctx context.Context, namespace string) *round {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.next[namespace]
	if r == nil {
		r = &round{ctx: ctx, done: make(chan struct{})}
		l.next[namespace] = r
		go l.run(namespace, r, l.running[namespace])
	} else if later(ctx, r.ctx) {
		r.ctx = ctx
	}
	return r
}

// run makes a round after the one before, if that is not nil.
func (l *lists) run(namespace string, r, before *round) {
	if before != nil {
		<-before.done
	}
	l.mu.Lock()
	delete(l.next, namespace)
	l.running[namespace] = r
	l.mu.Unlock()
	r.corrections, r.err = l.catchUp(r.ctx, namespace)
	l.mu.Lock()
	delete(l.running, namespace)
	l.mu.Unlock()
	close(r.done)
}

// later reports whether a's deadline is after b's.
func later(a, b context.Context) bool {
	x, limited := a.Deadline()
	y, other := b.Deadline()
	return !limited && other || limited && other && x.After(y)
}
