// SPDX-License-Identifier: Apache-2.0

// Package source holds the plans of a cluster, ready to be matched, and follows changes: an [Index]
// of what it is given, and a [Watcher] that watches the API server.
//
// In go objects, namespaces and the metadata of Secrets; out come the plans for a pod's labels. It
// never decides about a pod.
package source

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/internal/store"
)

// plans are the compiled objects of a cluster, with all else that decides which of them a pod gets.
// Selecting for a pod only visits those that may match its labels, however many there are. They are
// safe for concurrent use.
type plans struct {
	mu         sync.RWMutex
	namespaces map[string]*namespaceIndex     // ClusterPodDefaults in the empty namespace
	labels     map[string]labels.Set          // of known namespaces
	exempt     map[string][]*exempt.Exemption // of namespaces that have some
	now        func() time.Time
	secrets    *secretIndex
	// Strict is set if every namespace will eventually be known. A ClusterPodDefault
	// that selects namespaces must then wait for an unknown one.
	Strict bool
}

func newPlans() *plans {
	return &plans{namespaces: map[string]*namespaceIndex{}, labels: map[string]labels.Set{}, exempt: map[string][]*exempt.Exemption{}, now: time.Now, secrets: newSecretIndex()}
}

// An Index is a [match.Source] of what it is given.
type Index struct {
	*plans
	limit labels.Selector // of Secrets that are known; nil for all
}

// NewIndex returns an empty index. For namespaces not set with [Index.SetNamespace], it
// knows the one label that every namespace has: its name.
func NewIndex() *Index { return &Index{plans: newPlans()} }

// SetNamespace sets the labels of a namespace, by which ClusterPodDefaults select it.
func (x *Index) SetNamespace(name string, set map[string]string) { x.setNamespace(name, set) }

// DeleteNamespace forgets the labels of a namespace.
func (x *Index) DeleteNamespace(name string) { x.deleteNamespace(name) }

// SetSecret sets the labels of a Secret, by which objects select it: see [plan.Plan.Connects].
func (x *Index) SetSecret(namespace, name string, set map[string]string) {
	if x.limit == nil || x.limit.Matches(labels.Set(set)) {
		x.secrets.set(namespace, name, set)
	}
}

// LimitSecrets makes the index know the Secrets that a server with these [poddefault.Settings].DataConnections
// knows: those that the selector selects or, if it is empty, none. It must be called before
// [Index.SetSecret]. The error is about the selector.
func (x *Index) LimitSecrets(dataConnections string) (err error) {
	if dataConnections == "" {
		x.secrets.unknown = func() (problem, fault error) { return errConnectionsOff, nil }
		return nil
	}
	x.limit, err = labels.Parse(dataConnections)
	return err
}

// Set adds or replaces an object.
func (x *Index) Set(c *plan.Plan) { x.apply([]store.Change[*plan.Plan]{{Now: c}}) }

// Delete removes the object, if it exists.
func (x *Index) Delete(namespace, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(namespace, name)
}

// namespaceIndex files every selectable object under one requirement of its selector
// that needs a label on the pod.
type namespaceIndex struct {
	objects map[string]filing // all objects by name
	// filed maps terms of pod labels to objects: "key=value" requires that value, "key"
	// requires the label. A key contains no "=".
	filed map[string][]*plan.Plan
	rest  []*plan.Plan   // selectors without a required label: empty, NotIn, DoesNotExist
	keys  map[string]int // keys of the terms, with their number of terms
}

// apply applies changes of the cluster atomically with respect to selections.
func (p *plans) apply(changes []store.Change[*plan.Plan]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range changes {
		if c.Now == nil {
			p.remove(c.Before.Namespace(), c.Before.Name())
		} else {
			p.put(c.Now)
		}
	}
}

// put adds or replaces an object.
func (p *plans) put(c *plan.Plan) {
	p.remove(c.Namespace(), c.Name())
	ns := p.namespaces[c.Namespace()]
	if ns == nil {
		ns = &namespaceIndex{objects: map[string]filing{}, filed: map[string][]*plan.Plan{}, keys: map[string]int{}}
		p.namespaces[c.Namespace()] = ns
	}
	ns.add(c)
}

// remove removes an object, if it exists.
func (p *plans) remove(namespace, name string) {
	ns := p.namespaces[namespace]
	if ns == nil || ns.objects[name].Plan == nil {
		return
	}
	p.secrets.forget(ns.objects[name].Plan)
	if ns.remove(name); len(ns.objects) == 0 {
		delete(p.namespaces, namespace)
	}
}

func (p *plans) setNamespace(name string, set map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.labels[name] = set
}

func (p *plans) deleteNamespace(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.labels, name)
	p.secrets.deleteNamespace(name)
}

// NamespaceLabels implements [match.Source].
func (p *plans) NamespaceLabels(namespace string) (set labels.Set, known bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.labelsOf(namespace)
}

func (p *plans) labelsOf(namespace string) (set labels.Set, known bool) {
	if set, known = p.labels[namespace]; known {
		return set, true
	}
	return labels.Set{corev1.LabelMetadataName: namespace}, false
}

func indexed(all []*plan.Plan) map[string]*namespaceIndex {
	fresh := newPlans()
	for _, c := range all {
		fresh.put(c)
	}
	return fresh.namespaces
}

// Len returns the number of objects of both kinds.
func (p *plans) Len() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	n := 0
	for _, ns := range p.namespaces {
		n += len(ns.objects)
	}
	return n
}

// All returns the PodDefaults of a namespace, or the ClusterPodDefaults for the empty
// namespace, in order of application. It includes objects that select nothing.
// Additions are computed when two objects are compared.
func (p *plans) All(namespace string) []*plan.Plan {
	p.mu.RLock()
	defer p.mu.RUnlock()
	ns := p.namespaces[namespace]
	if ns == nil {
		return nil
	}
	all := make([]*plan.Plan, 0, len(ns.objects))
	for _, f := range ns.objects {
		all = append(all, f.Plan)
	}
	slices.SortFunc(all, plan.InOrder)
	return all
}

// Select implements [match.Source].
func (x *Index) Select(_ context.Context, namespace string, pod podmeta.Labels) ([]*plan.Plan, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.selected(x.namespaces, namespace, pod)
}

// selected returns the objects in from that match the labels of a pod, in order of
// application.
func (p *plans) selected(from map[string]*namespaceIndex, namespace string, pod podmeta.Labels) ([]*plan.Plan, error) {
	var selected []*plan.Plan
	if cluster := from[""]; cluster != nil {
		var err error
		if selected, err = p.inNamespace(namespace, cluster.selected(nil, pod)); err != nil {
			return nil, err
		}
	}
	if ns := from[namespace]; ns != nil && namespace != "" {
		selected = ns.selected(selected, pod)
	}
	slices.SortFunc(selected, plan.InOrder)
	return selected, nil
}

// inNamespace filters the objects that select the namespace.
func (p *plans) inNamespace(namespace string, selected []*plan.Plan) ([]*plan.Plan, error) {
	set, known := p.labelsOf(namespace)
	if !known && p.Strict && slices.ContainsFunc(selected, (*plan.Plan).NeedsNamespace) {
		return nil, admission.Unavailable(fmt.Errorf("the labels of the namespace %s are not known yet, and a ClusterPodDefault asks for them", namespace), time.Second)
	}
	return slices.DeleteFunc(selected, func(c *plan.Plan) bool { return !c.SelectsNamespace(set) }), nil
}

// selected appends the objects that match the labels of a pod.
func (ns *namespaceIndex) selected(selected []*plan.Plan, pod podmeta.Labels) []*plan.Plan {
	var converted labels.Labels // once, because it allocates
	take := func(candidates []*plan.Plan) {
		for _, c := range candidates {
			if converted == nil {
				converted = pod
			}
			if c.Selector().Matches(converted) {
				selected = append(selected, c)
			}
		}
	}
	take(ns.rest)
	term := make([]byte, 0, 128)
	find := func(key, value []byte) {
		term = append(term[:0], key...)
		take(ns.filed[string(term)])
		term = append(append(term, '='), value...)
		take(ns.filed[string(term)])
	}
	// Iterate over the smaller set: the pod's labels, or the keys of selectors.
	if pod.Len() <= len(ns.keys) {
		pod.Each(find)
		return selected
	}
	for key := range ns.keys {
		if value, ok := pod.Lookup(key); ok {
			find([]byte(key), []byte(value))
		}
	}
	return selected
}

// A filing is an object and the terms under which it is filed. Without terms it is in
// rest.
type filing struct {
	*plan.Plan
	terms []string
	// stable is the stable revision of the object during a rollout, if that selects other
	// pods.
	stable *filing
}

func (ns *namespaceIndex) add(c *plan.Plan) {
	f := ns.fileUnder(c)
	if stable, _ := c.RolledOut(); stable != nil && stable.Version() != c.Version() {
		other := ns.fileUnder(stable)
		f.stable = &other
	}
	ns.objects[c.Name()] = f
}

func (ns *namespaceIndex) fileUnder(c *plan.Plan) filing {
	f := filing{Plan: c}
	if c.Selector() != nil {
		f.terms = ns.rarest(c.Selector())
		ns.file(f, func(list []*plan.Plan) []*plan.Plan { return append(list, c) })
	}
	return f
}

func (ns *namespaceIndex) remove(name string) {
	f := ns.objects[name]
	delete(ns.objects, name)
	ns.takeOut(f)
	if f.stable != nil {
		ns.takeOut(*f.stable)
	}
}

func (ns *namespaceIndex) takeOut(f filing) {
	if f.Selector() != nil {
		ns.file(f, func(list []*plan.Plan) []*plan.Plan {
			return slices.DeleteFunc(list, func(c *plan.Plan) bool { return c == f.Plan })
		})
	}
}

// rarest chooses the requirement whose terms have the fewest objects so far, because a
// label in all selectors does not discriminate.
func (ns *namespaceIndex) rarest(selector labels.Selector) (terms []string) {
	requirements, _ := selector.Requirements()
	fewest := -1
	for _, r := range requirements {
		var candidate []string
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			for _, value := range r.Values().List() {
				candidate = append(candidate, r.Key()+"="+value)
			}
		case selection.Exists:
			candidate = []string{r.Key()}
		default: // pods without the label match
			continue
		}
		n := 0
		for _, term := range candidate {
			n += len(ns.filed[term])
		}
		if fewest < 0 || n < fewest {
			fewest, terms = n, candidate
		}
	}
	return terms
}

// file applies change to each list that holds the object.
func (ns *namespaceIndex) file(f filing, change func([]*plan.Plan) []*plan.Plan) {
	if len(f.terms) == 0 {
		ns.rest = change(ns.rest)
	}
	for _, term := range f.terms {
		key, _, _ := strings.Cut(term, "=")
		before, list := ns.filed[term], change(ns.filed[term])
		switch {
		case len(list) > 0 && len(before) == 0:
			ns.keys[key]++
		case len(list) == 0 && len(before) > 0:
			if ns.keys[key]--; ns.keys[key] == 0 {
				delete(ns.keys, key)
			}
		}
		if len(list) > 0 {
			ns.filed[term] = list
		} else {
			delete(ns.filed, term)
		}
	}
}
