// SPDX-License-Identifier: Apache-2.0

package poddefault

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
	"github.com/sallyport-io/sallyport/internal/store"
)

// Index holds compiled PodDefaults. Selecting for a pod only visits those that may
// match its labels, however many there are. It is safe for concurrent use and
// implements [Source].
type Index struct {
	mu         sync.RWMutex
	namespaces map[string]*namespaceIndex // ClusterPodDefaults in the empty namespace
	labels     map[string]labels.Set      // of known namespaces
	exempt     map[string][]Exemption     // of namespaces that have some
	now        func() time.Time
	secrets    *secretIndex
	limit      labels.Selector // of Secrets that are known; nil for all
	// strict is set if every namespace will eventually be known. A ClusterPodDefault
	// that selects namespaces must then wait for an unknown one.
	strict bool
}

// NewIndex returns an empty index. For namespaces not set with [Index.SetNamespace], it
// knows the one label that every namespace has: its name.
func NewIndex() *Index {
	return &Index{namespaces: map[string]*namespaceIndex{}, labels: map[string]labels.Set{}, exempt: map[string][]Exemption{}, now: time.Now, secrets: newSecretIndex()}
}

// SetNamespace sets the labels of a namespace, by which ClusterPodDefaults select it.
func (x *Index) SetNamespace(name string, set map[string]string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.labels[name] = set
}

// DeleteNamespace forgets the labels and exemptions of a namespace.
func (x *Index) DeleteNamespace(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.labels, name)
	delete(x.exempt, name)
	x.secrets.deleteNamespace(name)
}

// SetSecret sets the labels of a Secret, by which objects select it: see [Compiled.Connects].
func (x *Index) SetSecret(namespace, name string, set map[string]string) {
	if x.limit == nil || x.limit.Matches(labels.Set(set)) {
		x.secrets.set(namespace, name, set)
	}
}

// LimitSecrets makes the index know the Secrets that a server with these [Settings].DataConnections
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

// namespaceIndex files every selectable object under one requirement of its selector
// that needs a label on the pod.
type namespaceIndex struct {
	objects map[string]filing // all objects by name
	// filed maps terms of pod labels to objects: "key=value" requires that value, "key"
	// requires the label. A key contains no "=".
	filed map[string][]*Compiled
	rest  []*Compiled    // selectors without a required label: empty, NotIn, DoesNotExist
	keys  map[string]int // keys of the terms, with their number of terms
}

// Set adds or replaces an object.
func (x *Index) Set(c *Compiled) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.set(c)
}

func (x *Index) set(c *Compiled) {
	ns := x.namespaces[c.namespace]
	if ns == nil {
		ns = &namespaceIndex{objects: map[string]filing{}, filed: map[string][]*Compiled{}, keys: map[string]int{}}
		x.namespaces[c.namespace] = ns
	}
	x.forget(ns, c.name)
	ns.add(c)
}

// Delete removes the object, if it exists.
func (x *Index) Delete(namespace, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.delete(namespace, name)
}

func (x *Index) delete(namespace, name string) {
	if ns := x.namespaces[namespace]; ns != nil {
		x.forget(ns, name)
		if len(ns.objects) == 0 {
			delete(x.namespaces, namespace)
		}
	}
}

// forget removes an object of a namespace.
func (x *Index) forget(ns *namespaceIndex, name string) {
	if known := ns.objects[name].Compiled; known != nil {
		x.secrets.forget(known)
	}
	ns.remove(name)
}

// apply applies changes of the cluster atomically with respect to selections.
func (x *Index) apply(changes []store.Change[*Compiled]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range changes {
		if c.Now == nil {
			x.delete(c.Before.namespace, c.Before.name)
		} else {
			x.set(c.Now)
		}
	}
}

// NamespaceLabels implements [Source].
func (x *Index) NamespaceLabels(namespace string) labels.Set {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if set, known := x.labels[namespace]; known {
		return set
	}
	return labels.Set{corev1.LabelMetadataName: namespace}
}

func indexed(all []*Compiled) map[string]*namespaceIndex {
	fresh := NewIndex()
	for _, c := range all {
		fresh.Set(c)
	}
	return fresh.namespaces
}

// Len returns the number of objects of both kinds.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := 0
	for _, ns := range x.namespaces {
		n += len(ns.objects)
	}
	return n
}

// All returns the PodDefaults of a namespace, or the ClusterPodDefaults for the empty
// namespace, in order of application. It includes objects that select nothing.
// Additions are computed when two objects are compared.
func (x *Index) All(namespace string) []*Compiled {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ns := x.namespaces[namespace]
	if ns == nil {
		return nil
	}
	all := make([]*Compiled, 0, len(ns.objects))
	for _, f := range ns.objects {
		all = append(all, f.Compiled)
	}
	slices.SortFunc(all, inOrder)
	return all
}

// Select implements [Source].
func (x *Index) Select(_ context.Context, namespace string, pod Labels) ([]*Compiled, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.selected(x.namespaces, namespace, pod)
}

// selected returns the objects in from that match the labels of a pod, in order of
// application.
func (x *Index) selected(from map[string]*namespaceIndex, namespace string, pod Labels) ([]*Compiled, error) {
	var selected []*Compiled
	if cluster := from[""]; cluster != nil {
		var err error
		if selected, err = x.inNamespace(namespace, cluster.selected(nil, pod)); err != nil {
			return nil, err
		}
	}
	if ns := from[namespace]; ns != nil && namespace != "" {
		selected = ns.selected(selected, pod)
	}
	slices.SortFunc(selected, inOrder)
	return selected, nil
}

// inNamespace filters the objects that select the namespace.
func (x *Index) inNamespace(namespace string, selected []*Compiled) ([]*Compiled, error) {
	set, known := x.labels[namespace]
	if !known {
		if x.strict && slices.ContainsFunc(selected, (*Compiled).needsNamespace) {
			return nil, admission.Unavailable(fmt.Errorf("the labels of the namespace %s are not known yet, and a ClusterPodDefault asks for them", namespace), time.Second)
		}
		set = labels.Set{corev1.LabelMetadataName: namespace}
	}
	return slices.DeleteFunc(selected, func(c *Compiled) bool { return c.namespaces != nil && !c.namespaces.Matches(set) }), nil
}

// selected appends the objects that match the labels of a pod.
func (ns *namespaceIndex) selected(selected []*Compiled, pod Labels) []*Compiled {
	var converted labels.Labels // once, because it allocates
	take := func(candidates []*Compiled) {
		for _, c := range candidates {
			if converted == nil {
				converted = pod
			}
			if c.selector.Matches(converted) {
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
	if pod.len() <= len(ns.keys) {
		pod.each(find)
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
	*Compiled
	terms []string
	// stable is the stable revision of the object during a rollout, if that selects other
	// pods.
	stable *filing
}

func (ns *namespaceIndex) add(c *Compiled) {
	f := ns.fileUnder(c)
	if stable, _ := c.RolledOut(); stable != nil && stable.version != c.version {
		other := ns.fileUnder(stable)
		f.stable = &other
	}
	ns.objects[c.name] = f
}

func (ns *namespaceIndex) fileUnder(c *Compiled) filing {
	f := filing{Compiled: c}
	if c.selector != nil {
		f.terms = ns.rarest(c.selector)
		ns.file(f, func(list []*Compiled) []*Compiled { return append(list, c) })
	}
	return f
}

func (ns *namespaceIndex) remove(name string) {
	f, ok := ns.objects[name]
	if !ok {
		return
	}
	delete(ns.objects, name)
	ns.takeOut(f)
	if f.stable != nil {
		ns.takeOut(*f.stable)
	}
}

func (ns *namespaceIndex) takeOut(f filing) {
	if f.selector != nil {
		ns.file(f, func(list []*Compiled) []*Compiled {
			return slices.DeleteFunc(list, func(c *Compiled) bool { return c == f.Compiled })
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
func (ns *namespaceIndex) file(f filing, change func([]*Compiled) []*Compiled) {
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
