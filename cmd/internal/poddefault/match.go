// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// Source knows the objects, and all else that decides which of them a pod gets. An error
// is a fault of the webhook: it neither admits nor denies the pod. Wrap it with
// [admission.Unavailable] if a retry may succeed.
type Source interface {
	// Fresh returns a source that answers as if everything for the namespace had been read
	// after the call began, or the source itself if it cannot be out of date.
	Fresh(ctx context.Context, namespace string) (Source, error)
	// Select returns the PodDefaults of a namespace, and the ClusterPodDefaults that select
	// it, whose selectors match a pod with the given labels, in order of application.
	Select(ctx context.Context, namespace string, pod Labels) ([]*Compiled, error)
	// Named returns those of them with these names, as in [meta.DecisionsAnnotation],
	// whatever labels they select.
	Named(ctx context.Context, namespace string, decisions []string) ([]*Compiled, error)
	// NamespaceLabels returns the labels of a namespace, as far as known.
	NamespaceLabels(namespace string) labels.Set
	// Exemptions returns the exemptions of a namespace, which must not be changed, and the
	// time that decides whether they have ended.
	Exemptions(namespace string) ([]Exemption, time.Time)
	// Connect replaces the objects that select Secrets by ones that name them.
	Connect(namespace string, objects []*Compiled) error
}

// A match holds the objects that are selected for a pod.
type match struct {
	objects []*Compiled // in order of application
	audits  bool        // some object is in mode Audit
	// outside would select the pod in another revision than it gets, if it were not exempt,
	// or if labels that PodDefaults add selected optional objects.
	outside   []*Compiled
	exempted  []Exempted // those of outside from which the pod is exempt
	bySent    *match     // what the labels that the pod was sent with selected; nil if that is all
	namespace string
}

// A matcher selects objects for one pod. Keep it off the heap: see [arrival]. That is why the
// source is a parameter.
type matcher struct {
	arrival
	excluded bool // the pod excludes itself: only objects that do not allow that are selected
	// pinned are the names of the objects that an earlier call for the same request has
	// applied. They stay selected.
	pinned []string
}

func newMatcher(namespace string, pod *metadata, excluded bool, b *bounds) matcher {
	pod.namespace = namespace // it may name none
	s := matcher{arrival: arrival{metadata: pod, bounds: b}, excluded: excluded}
	if pod.history == nil || !pod.history.stored {
		s.pinned = s.appliedBefore()
	}
	return s
}

// bySent selects by the labels that the pod was sent with. An [*excess] error is a decision.
func (s *matcher) bySent(source Source) (match, error) {
	return s.by(source, s.labels, true)
}

// byStored adds to a match the objects without allowExclude that the labels select with
// which the pod would be stored, so that nobody gets past one by an object that adds labels.
// Other objects that only these labels select are outside.
func (s *matcher) byStored(source Source, m match, added []entry) (out match, more []*Compiled, err error) {
	all, err := s.by(source, s.labels.with(added), false)
	if err != nil {
		return m, nil, err
	}
	sent := &m
	if m.bySent != nil {
		sent = m.bySent
	}
	out = *sent
	out.bySent, out.audits, out.objects = sent, m.audits, slices.Clone(m.objects)
	for _, c := range all.objects {
		switch {
		case isIn(m.objects, c):
		case c.allowExclude:
			out.outside = append(slices.Clip(out.outside), c)
		default:
			more = append(more, c)
			out.audits = out.audits || c.audit
		}
	}
	for _, c := range all.outside {
		if !isIn(out.outside, c) {
			out.outside = append(slices.Clip(out.outside), c)
		}
	}
	for _, e := range all.exempted {
		if !slices.ContainsFunc(out.exempted, func(known Exempted) bool { return known.title == e.title }) {
			out.exempted = append(slices.Clip(out.exempted), e)
		}
	}
	out.objects = append(out.objects, more...)
	slices.SortFunc(out.objects, inOrder)
	return out, more, nil
}

// by selects by labels, of which those that an earlier call has added do not count if sent
// is set.
func (s *matcher) by(source Source, set Labels, sent bool) (out match, err error) {
	out.namespace = s.namespace
	var pinned []*Compiled
	if len(s.pinned) > 0 {
		if pinned, err = source.Named(s.bounds.ctx, s.namespace, slices.Clone(s.pinned)); err != nil {
			return match{}, err
		}
		pinned = slices.DeleteFunc(pinned, func(c *Compiled) bool { return s.past(s.bounds).came(c.unpack().mark) })
		if sent {
			set = s.withoutAdded(set, pinned)
		}
	}
	selected, err := source.Select(s.bounds.ctx, s.namespace, set)
	if err != nil {
		return match{}, err
	}
	if selected, out.outside, err = s.resolve(source, selected, pinned); err != nil {
		return match{}, err
	}
	if s.excluded {
		mayExclude := func(c *Compiled) bool { return c.allowExclude }
		selected, out.outside = slices.DeleteFunc(selected, mayExclude), slices.DeleteFunc(out.outside, mayExclude)
	}
	selected, out.exempted = s.exempt(source, selected)
	for _, e := range out.exempted {
		out.outside = append(out.outside, e.Compiled)
	}
	// The revision that the pod gets decides which Secrets it selects.
	if err := source.Connect(s.namespace, selected); err != nil {
		return match{}, err
	}
	if err := s.within(selected, set); err != nil {
		return match{}, err
	}
	for _, c := range selected {
		if out.audits = out.audits || c.audit; c.unpack().unreadable != nil {
			return match{}, c.unreadable
		}
	}
	out.objects = selected
	return out, nil
}

// within returns the limit that the selected objects exceed, or nil.
func (s *matcher) within(selected []*Compiled, set Labels) error {
	if s.bounds.did(workOfVisit*len(selected) + workOfLabel*set.len()); s.bounds.fault != nil {
		return s.bounds.fault
	}
	if s.bounds.over != "" {
		return &excess{all: selected, text: s.bounds.over, remedy: "Have fewer of them select the same pods"}
	}
	if len(selected) > maxObjects {
		return &excess{all: selected, text: fmt.Sprintf("%d of them select it, and at most %d may", len(selected), maxObjects),
			remedy: "Have fewer of them select the same pods"}
	}
	size := 0
	for _, c := range selected {
		size += c.size
	}
	if size > maxSelected {
		return &excess{all: selected, text: fmt.Sprintf("the specs of those that select it have %d bytes of JSON, and at most %d may", size, maxSelected),
			remedy: "Have fewer of them select the same pods"}
	}
	return nil
}

var markPrefix, clusterMarkPrefix = []byte(meta.MarkPrefix), []byte(meta.ClusterMarkPrefix)

// appliedBefore returns the names of objects of which the pod has a mark that it was not
// sent with, as far as its other annotations name them.
func (s *matcher) appliedBefore() (names []string) {
	var marks map[string]bool
	for _, e := range s.annotations.list { // a closure would move the metadata to the heap
		key := e.key
		if !bytes.HasPrefix(key, markPrefix) && !bytes.HasPrefix(key, clusterMarkPrefix) || !isMark(string(key)) {
			continue
		}
		if s.bounds.did(1); !s.past(s.bounds).came(string(key)) {
			if marks == nil {
				marks = map[string]bool{}
			}
			marks[string(key)] = true
		}
	}
	if marks == nil {
		return nil
	}
	add := func(decision string) {
		if mark := markFor(decision); marks[mark] {
			names = append(names, decision)
			delete(marks, mark)
		}
	}
	listed := s.annotations.Get(meta.DecisionsAnnotation)
	s.bounds.scans(len(listed))
	for decision := range strings.SplitSeq(listed, ",") {
		add(decision)
	}
	for decision := range s.past(s.bounds).revisions {
		add(decision)
	}
	slices.Sort(names)
	return names
}

// withoutAdded returns the labels without those that an earlier call has added with these
// objects.
func (s *matcher) withoutAdded(set Labels, applied []*Compiled) Labels {
	added := map[string]bool{}
	for _, c := range applied {
		for _, l := range c.labels {
			if s.bounds.did(1); !s.past(s.bounds).cameLabel(l.key) {
				added[l.key] = true
			}
		}
	}
	return set.without(added)
}

// isIn compares titles, because an object may have been read again or filled in.
func isIn(list []*Compiled, c *Compiled) bool {
	return slices.ContainsFunc(list, func(other *Compiled) bool { return other == c || other.title == c.title })
}
