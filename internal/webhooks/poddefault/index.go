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

// Index holds compiled PodDefaults so that selecting for a pod touches only those
// that can match its labels, however many there are. It is safe for concurrent
// use and answers [Source].
type Index struct {
	mu         sync.RWMutex
	namespaces map[string]*namespaceIndex // ClusterPodDefaults in the one without a name
	labels     map[string]labels.Set      // of namespaces, as far as they are known
	// strict is set if every namespace will be known: one that is not must be waited for
	// where a ClusterPodDefault asks for its labels.
	strict bool
}

// NewIndex is an empty index. Of a namespace that [Index.SetNamespace] has not told
// of it knows the one label that every namespace has, its name.
func NewIndex() *Index {
	return &Index{namespaces: map[string]*namespaceIndex{}, labels: map[string]labels.Set{}}
}

// SetNamespace tells of the labels of a namespace, which ClusterPodDefaults select by.
func (x *Index) SetNamespace(name string, set map[string]string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.labels[name] = set
}

// DeleteNamespace forgets the labels of a namespace.
func (x *Index) DeleteNamespace(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.labels, name)
}

// namespaceIndex files every selectable object under one requirement of its
// selector that the pod must meet by having a label.
type namespaceIndex struct {
	objects map[string]filing // by name, all of them
	// filed holds them by the term that a pod's label must give: "key=value" if the
	// label must have that value, "key" if it must be there. A key has no "=".
	filed map[string][]*Compiled
	rest  []*Compiled    // no label is required: the empty selector, NotIn, DoesNotExist
	keys  map[string]int // of the terms, with how many terms there are of each
}

// Set adds the object or replaces the one of the same name.
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
	ns.remove(c.name)
	ns.add(c)
}

// Delete removes the object, if it is there.
func (x *Index) Delete(namespace, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.delete(namespace, name)
}

func (x *Index) delete(namespace, name string) {
	if ns := x.namespaces[namespace]; ns != nil {
		ns.remove(name)
		if len(ns.objects) == 0 {
			delete(x.namespaces, namespace)
		}
	}
}

// apply takes in changes of the cluster, all of them between two selections.
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

// labelsOf are those of a namespace, as far as they are known.
func (x *Index) labelsOf(namespace string) labels.Set {
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

// Len is the number of objects of both kinds.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := 0
	for _, ns := range x.namespaces {
		n += len(ns.objects)
	}
	return n
}

// All returns the PodDefaults of a namespace in the order of their application, those
// that select nothing included; of the namespace without a name the ClusterPodDefaults.
// What they add is worked out when two of them are compared.
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

// selected are those among the objects of namespaces that match the labels of a pod, in
// their order.
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

// inNamespace leaves those that select the namespace.
func (x *Index) inNamespace(namespace string, selected []*Compiled) ([]*Compiled, error) {
	set, known := x.labels[namespace]
	if !known {
		if x.strict && slices.ContainsFunc(selected, func(c *Compiled) bool { return c.namespaces != nil }) {
			return nil, admission.Unavailable(fmt.Errorf("the labels of the namespace %s are not known yet, and a ClusterPodDefault asks for them", namespace), time.Second)
		}
		set = labels.Set{corev1.LabelMetadataName: namespace}
	}
	return slices.DeleteFunc(selected, func(c *Compiled) bool { return c.namespaces != nil && !c.namespaces.Matches(set) }), nil
}

// selected appends the objects that match the labels of a pod.
func (ns *namespaceIndex) selected(selected []*Compiled, pod Labels) []*Compiled {
	take := func(candidates []*Compiled) {
		for _, c := range candidates {
			if c.selector.Matches(pod) {
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
	// Whichever are fewer: the pod's labels, or the keys that objects select by.
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

// A filing is an object and the terms under which it is filed; none: under rest.
type filing struct {
	*Compiled
	terms []string
}

func (ns *namespaceIndex) add(c *Compiled) {
	f := filing{Compiled: c}
	if c.selector != nil {
		f.terms = ns.rarest(c.selector)
		ns.file(f, func(list []*Compiled) []*Compiled { return append(list, c) })
	}
	ns.objects[c.name] = f
}

func (ns *namespaceIndex) remove(name string) {
	f, ok := ns.objects[name]
	if !ok {
		return
	}
	delete(ns.objects, name)
	if f.selector != nil {
		ns.file(f, func(list []*Compiled) []*Compiled {
			return slices.DeleteFunc(list, func(c *Compiled) bool { return c == f.Compiled })
		})
	}
}

// rarest chooses the requirement under whose terms the fewest objects are filed so
// far: a label that all selectors share tells nothing.
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
		default: // a pod without the label meets it
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

// file applies change to each list that the object is, or will be, filed in.
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
