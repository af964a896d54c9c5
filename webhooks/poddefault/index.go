// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Index holds compiled PodDefaults so that selecting for a pod touches only those
// that can match its labels, however many there are. It is safe for concurrent
// use and answers [Source].
type Index struct {
	mu         sync.RWMutex
	namespaces map[string]*namespaceIndex
}

// NewIndex is an empty index.
func NewIndex() *Index { return &Index{namespaces: map[string]*namespaceIndex{}} }

// namespaceIndex files every selectable object under one requirement of its
// selector that the pod must meet by having a label.
type namespaceIndex struct {
	objects map[string]filing // by name, all of them
	// filed holds them by the term that a pod's label must give: "key=value" if the
	// label must have that value, "key" if it must be there. A key has no "=".
	filed map[string][]*Compiled
	rest  []*Compiled // no label is required: the empty selector, NotIn, DoesNotExist
}

// Set adds the object or replaces the one of the same name.
func (x *Index) Set(c *Compiled) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ns := x.namespaces[c.namespace]
	if ns == nil {
		ns = &namespaceIndex{objects: map[string]filing{}, filed: map[string][]*Compiled{}}
		x.namespaces[c.namespace] = ns
	}
	ns.remove(c.name)
	ns.add(c)
}

// Delete removes the object, if it is there.
func (x *Index) Delete(namespace, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if ns := x.namespaces[namespace]; ns != nil {
		ns.remove(name)
		if len(ns.objects) == 0 {
			delete(x.namespaces, namespace)
		}
	}
}

// Replace makes the index hold these objects and no others.
func (x *Index) Replace(all []*Compiled) {
	fresh := NewIndex()
	for _, c := range all {
		fresh.Set(c)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.namespaces = fresh.namespaces
}

// Len is the number of objects.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := 0
	for _, ns := range x.namespaces {
		n += len(ns.objects)
	}
	return n
}

// All returns the objects of a namespace in name order, those that select nothing
// included.
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
	ns := x.namespaces[namespace]
	if ns == nil {
		return nil, nil
	}
	var selected []*Compiled
	take := func(candidates []*Compiled) {
		for _, c := range candidates {
			if c.selector.Matches(pod) {
				selected = append(selected, c)
			}
		}
	}
	take(ns.rest)
	term := make([]byte, 0, 128)
	for _, l := range pod {
		term = append(term[:0], l.key...)
		take(ns.filed[string(term)])
		term = append(append(term, '='), l.value...)
		take(ns.filed[string(term)])
	}
	slices.SortFunc(selected, inOrder)
	return selected, nil
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
		if list := change(ns.filed[term]); len(list) > 0 {
			ns.filed[term] = list
		} else {
			delete(ns.filed, term)
		}
	}
}
