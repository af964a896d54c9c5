// SPDX-License-Identifier: Apache-2.0

// Package match decides which plans a pod gets, in which revision, and which not although they
// would select it: those of another revision, and those from which the pod is exempt.
//
// In go a pod's metadata and a [Source]; out comes a [Match], or an [Excess], which denies the pod. It
// never reads the pod's spec, and changes nothing.
package match

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
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
	Select(ctx context.Context, namespace string, pod podmeta.Labels) ([]*plan.Plan, error)
	// Named returns those of them with these names, as in [meta.DecisionsAnnotation],
	// whatever labels they select.
	Named(ctx context.Context, namespace string, decisions []string) ([]*plan.Plan, error)
	// NamespaceLabels returns the labels of a namespace, if they are known; otherwise those that every namespace has.
	NamespaceLabels(namespace string) (set labels.Set, known bool)
	// Exemptions returns the exemptions of a namespace, which must not be changed, and the
	// time that decides whether they have ended.
	Exemptions(namespace string) ([]*exempt.Exemption, time.Time)
	// Connect replaces the objects that select Secrets by ones that name them.
	Connect(namespace string, objects []*plan.Plan) error
}

// A Match holds the objects that are selected for a pod.
type Match struct {
	Objects []*plan.Plan // in order of application
	Audits  bool         // some object is in mode Audit
	// Outside would select the pod in another revision than it gets, if it were not exempt,
	// or if labels that PodDefaults add selected optional objects.
	Outside   []*plan.Plan
	exempted  []Exempted   // those of outside from which the pod is exempt
	excluded  []*plan.Plan // those from which the pod excludes itself
	bySent    *Match       // what the labels that the pod was sent with selected; nil if that is all
	Namespace string
}

// A Matcher selects objects for one pod. Keep it off the heap: see [Arrival]. That is why the
// source is a parameter.
type Matcher struct {
	Arrival
	excluded bool     // the pod excludes itself: only objects that do not allow that are selected
	marked   []string // names of the objects of which the pod has a mark
	// Discounted is set once labels of the pod do not select, because an earlier call has
	// added them.
	Discounted bool
}

// NewMatcher returns a matcher for a pod of a namespace. Excluded says that the pod excludes itself.
func NewMatcher(namespace string, pod *meta.Metadata, excluded bool, b *meta.Budget) Matcher {
	pod.Namespace = namespace // it may name none
	s := Matcher{Arrival: Arrival{Metadata: pod, Bounds: b}, excluded: excluded}
	if pod.History == nil || !pod.History.Stored {
		s.marked = s.markedBy()
	}
	return s
}

// BySent selects by the labels that the pod was sent with. An [*Excess] error is a decision.
func (s *Matcher) BySent(source Source) (Match, error) {
	return s.by(source, s.Labels, true)
}

// ByStored adds to a match the objects without allowExclude that the labels select with
// which the pod would be stored, so that no object that adds labels gets a pod past one.
// Other objects that only these labels select are outside.
func (s *Matcher) ByStored(source Source, m Match, added []podmeta.Entry) (out Match, more []*plan.Plan, err error) {
	all, err := s.by(source, s.Labels.With(added), false)
	if err != nil {
		return m, nil, err
	}
	sent := &m
	if m.bySent != nil {
		sent = m.bySent
	}
	out = *sent
	out.bySent, out.Audits, out.Objects = sent, m.Audits, slices.Clone(m.Objects)
	for _, c := range all.Objects {
		switch {
		case plan.IsIn(m.Objects, c):
		case c.AllowExclude():
			out.Outside = append(slices.Clip(out.Outside), c)
		default:
			more = append(more, c)
			out.Audits = out.Audits || c.Audit
		}
	}
	for _, c := range all.Outside {
		if !plan.IsIn(out.Outside, c) {
			out.Outside = append(slices.Clip(out.Outside), c)
		}
	}
	for _, e := range all.exempted {
		if !slices.ContainsFunc(out.exempted, func(known Exempted) bool { return known.String() == e.String() }) {
			out.exempted = append(slices.Clip(out.exempted), e)
		}
	}
	out.Objects = append(out.Objects, more...)
	slices.SortFunc(out.Objects, plan.InOrder)
	return out, more, nil
}

// by selects by labels, of which those that an earlier call has added do not count if sent
// is set.
func (s *Matcher) by(source Source, set podmeta.Labels, sent bool) (out Match, err error) {
	out.Namespace = s.Namespace
	var pinned []*plan.Plan
	if len(s.marked) > 0 {
		if pinned, err = source.Named(s.Bounds.Context, s.Namespace, slices.Clone(s.marked)); err != nil {
			return Match{}, err
		}
		if sent {
			own := s.withoutAdded(set, pinned)
			s.Discounted = own.Len() < set.Len()
			set = own
		}
		// Those that an earlier call for the same request has applied stay selected.
		pinned = slices.DeleteFunc(pinned, func(c *plan.Plan) bool { return s.Past(s.Bounds).Came(c.Unpack().MarkKey) })
	}
	selected, err := source.Select(s.Bounds.Context, s.Namespace, set)
	if err != nil {
		return Match{}, err
	}
	if selected, out.Outside, err = s.resolve(source, selected, pinned); err != nil {
		return Match{}, err
	}
	if s.excluded {
		mayExclude := func(c *plan.Plan) bool { return c.AllowExclude() }
		for _, c := range selected {
			if mayExclude(c) {
				out.excluded = append(out.excluded, c)
			}
		}
		selected, out.Outside = slices.DeleteFunc(selected, mayExclude), slices.DeleteFunc(out.Outside, mayExclude)
	}
	selected, out.exempted = s.Exempt(source, selected)
	for _, e := range out.exempted {
		out.Outside = append(out.Outside, e.Plan)
	}
	// The revision that the pod gets decides which Secrets it selects.
	if err := source.Connect(s.Namespace, selected); err != nil {
		return Match{}, err
	}
	if err := s.within(selected, set); err != nil {
		return Match{}, err
	}
	for _, c := range selected {
		if out.Audits = out.Audits || c.Audit; c.Unpack().Unreadable != nil {
			return Match{}, c.Unreadable
		}
	}
	out.Objects = selected
	return out, nil
}

// within returns the limit that the selected objects exceed, or nil.
func (s *Matcher) within(selected []*plan.Plan, set podmeta.Labels) error {
	if s.Bounds.Did(meta.WorkOfVisit*len(selected) + meta.WorkOfLabel*set.Len()); s.Bounds.Fault != nil {
		return s.Bounds.Fault
	}
	if s.Bounds.Over != "" {
		return &Excess{All: selected, Text: s.Bounds.Over, Remedy: "Have fewer of them select the same pods"}
	}
	if len(selected) > meta.MaxObjects {
		return &Excess{All: selected, Text: fmt.Sprintf("%d of them select it, and at most %d may", len(selected), meta.MaxObjects),
			Remedy: "Have fewer of them select the same pods"}
	}
	size := 0
	for _, c := range selected {
		size += c.Size
	}
	if size > meta.MaxSelected {
		return &Excess{All: selected, Text: fmt.Sprintf("the specs of those that select it have %d bytes of JSON, and at most %d may", size, meta.MaxSelected),
			Remedy: "Have fewer of them select the same pods"}
	}
	return nil
}

var markPrefix, clusterMarkPrefix = []byte(meta.MarkPrefix), []byte(meta.ClusterMarkPrefix)

// markedBy returns the names of objects of which the pod has a mark, as far as its other
// annotations name them.
func (s *Matcher) markedBy() (names []string) {
	var marks map[string]bool
	for _, e := range s.Annotations.List { // a closure would move the metadata to the heap
		key := e.Key
		if !bytes.HasPrefix(key, markPrefix) && !bytes.HasPrefix(key, clusterMarkPrefix) || !meta.IsMark(string(key)) {
			continue
		}
		if marks == nil {
			marks = map[string]bool{}
		}
		s.Bounds.Did(1)
		marks[string(key)] = true
	}
	if marks == nil {
		return nil
	}
	add := func(decision string) {
		if mark := meta.MarkFor(decision); marks[mark] {
			names = append(names, decision)
			delete(marks, mark)
		}
	}
	listed := s.Annotations.Get(meta.DecisionsAnnotation)
	s.Bounds.Scans(len(listed))
	for decision := range strings.SplitSeq(listed, ",") {
		add(decision)
	}
	for decision := range s.Past(s.Bounds).Revisions {
		add(decision)
	}
	slices.Sort(names)
	return names
}

// withoutAdded returns the labels without those that an earlier call has added with these
// objects.
func (s *Matcher) withoutAdded(set podmeta.Labels, applied []*plan.Plan) podmeta.Labels {
	added := map[string]bool{}
	for _, c := range applied {
		for _, l := range c.Labels {
			if s.Bounds.Did(1); !s.Past(s.Bounds).CameLabel(l.Key) {
				added[l.Key] = true
			}
		}
	}
	return set.Without(added)
}
