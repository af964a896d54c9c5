// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"slices"
	"strings"
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
	labels  map[string]*labelIndex
	rest    []*Compiled // no label is required: the empty selector, NotIn, DoesNotExist
}

type labelIndex struct {
	values  map[string][]*Compiled // the label must have this value
	present []*Compiled            // the label must be there
}

// Set adds the object or replaces the one of the same name.
func (x *Index) Set(c *Compiled) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ns := x.namespaces[c.namespace]
	if ns == nil {
		ns = &namespaceIndex{objects: map[string]filing{}, labels: map[string]*labelIndex{}}
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
	slices.SortFunc(all, byName)
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
	for _, l := range pod {
		if label := ns.labels[string(l.key)]; label != nil {
			take(label.present)
			take(label.values[string(l.value)])
		}
	}
	slices.SortFunc(selected, byName)
	return selected, nil
}

func byName(a, b *Compiled) int { return strings.Compare(a.name, b.name) }

// A filing is an object and where it is filed.
type filing struct {
	*Compiled
	key    string   // the label that the pod must have; empty: filed under rest
	values []string // the values of which it must have one; none: any
}

func (ns *namespaceIndex) add(c *Compiled) {
	f := filing{Compiled: c}
	if c.selector != nil {
		f.key, f.values = ns.rarest(c.selector)
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

// rarest chooses the requirement under which the fewest objects are filed so far:
// a label that all selectors share tells nothing.
func (ns *namespaceIndex) rarest(selector labels.Selector) (key string, values []string) {
	requirements, _ := selector.Requirements()
	fewest := -1
	for _, r := range requirements {
		var wanted []string
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			wanted = r.Values().List()
		case selection.Exists:
		default: // a pod without the label meets it
			continue
		}
		n := 0
		if label := ns.labels[r.Key()]; label != nil {
			n = len(label.present)
			for _, value := range wanted {
				n += len(label.values[value])
			}
		}
		if fewest < 0 || n < fewest {
			fewest, key, values = n, r.Key(), wanted
		}
	}
	return key, values
}

// file applies change to each list that the object is, or will be, filed in.
func (ns *namespaceIndex) file(f filing, change func([]*Compiled) []*Compiled) {
	if f.key == "" {
		ns.rest = change(ns.rest)
		return
	}
	label := ns.labels[f.key]
	if label == nil {
		label = &labelIndex{values: map[string][]*Compiled{}}
		ns.labels[f.key] = label
	}
	if len(f.values) == 0 {
		label.present = change(label.present)
	}
	for _, value := range f.values {
		if list := change(label.values[value]); len(list) > 0 {
			label.values[value] = list
		} else {
			delete(label.values, value)
		}
	}
	if len(label.present) == 0 && len(label.values) == 0 {
		delete(ns.labels, f.key)
	}
}
