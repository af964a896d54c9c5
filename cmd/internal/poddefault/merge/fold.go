// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"slices"
	"strings"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// ErrNoPod says that what should be a pod has no spec, or containers that are not objects.
var ErrNoPod = errors.New("not a pod")

// A Folding folds objects into one pod, as often as objects are dropped. The pod's metadata
// and bounds are parameters, because they would not stay on the stack beside raw.
type Folding struct {
	Raw       []byte
	LeftAlone *LeftAlone
}

// Resolve folds the matched objects into the pod, and denies one that selects alternatives. An
// error is [ErrNoPod], a [*match.Excess], or a fault; with an excess, the merge so far is
// returned too.
func (f *Folding) Resolve(md *meta.Metadata, b *meta.Budget, of match.Match) (*Merge, error) {
	m, err := f.resolve(md, b, of)
	if err == nil {
		err = f.alternatives(md, b, m, of)
	}
	return m, err
}

// resolve folds the matched objects into the pod, and anew without an object that Skip, or a
// rule of the finished pod, drops: at most once for each.
func (f *Folding) resolve(md *meta.Metadata, b *meta.Budget, of match.Match) (*Merge, error) {
	skipped := skippedBefore(of, md, b)
	for {
		m, err := f.fold(md, b, of, skipped)
		if err != nil || m.dropped == nil {
			return m, err
		}
		skipped = append(skipped, skip{object: m.dropped.object, conflict: m.dropped,
			reason: strings.TrimPrefix(m.dropped.text, m.dropped.object.String()+": ")})
	}
}

// fold folds the matched objects, except skipped ones, into a copy of the pod.
func (f *Folding) fold(md *meta.Metadata, b *meta.Budget, of match.Match, skipped []skip) (*Merge, error) {
	pod, ok := podstate.Read(f.Raw, *md, of.Objects, b.Another())
	if !ok {
		return nil, ErrNoPod
	}
	m := All(pod, of, skipped, f.LeftAlone)
	*b = pod.Bounds
	return m, m.Beyond()
}

// alternatives denies a pod that selects two objects of an exclusive group. One that is
// skipped, with and without the others, does not count.
func (f *Folding) alternatives(md *meta.Metadata, b *meta.Budget, m *Merge, of match.Match) error {
	member := func(c *plan.Plan) bool { return c.Group != "" && c.Injects() }
	members := map[string]int{} // of groups
	for _, c := range of.Objects {
		if member(c) {
			members[c.Group]++
		}
	}
	first := map[string]*plan.Plan{}
	for _, c := range of.Objects {
		if !member(c) || members[c.Group] < 2 {
			continue
		}
		applies := plan.IsIn(m.Applied, c)
		if !applies {
			alone := of
			alone.Objects = nil
			for _, other := range of.Objects {
				if other.Group != c.Group || other == c {
					alone.Objects = append(alone.Objects, other)
				}
			}
			without, err := f.resolve(md, b, alone)
			if err != nil {
				return err
			}
			applies = plan.IsIn(without.Applied, c)
		}
		switch {
		case applies && first[c.Group] == nil:
			first[c.Group] = c
		case applies:
			m.conflict(conflict{object: c, opponent: first[c.Group], way: "choose one of the alternatives"},
				"%s are alternatives of the exclusive group %s, and the pod selects both", compare.Both(first[c.Group], c), c.Group)
		}
	}
	return nil
}

// AddedLabels returns the labels that the objects add to the pod.
func (m *Merge) AddedLabels() (added []podmeta.Entry) {
	if m == nil || len(m.labels) == 0 {
		return nil
	}
	for _, e := range m.entries {
		if e.field == labelsField {
			added = append(added, e.entry)
		}
	}
	return added
}

// DenyFurther denies a pod whose labels would select yet another object that does not allow
// exclusion, because of labels of objects that only such labels have selected.
func (m *Merge) DenyFurther(s *match.Matcher, source match.Source, of match.Match) (match.Match, error) {
	out, more, err := s.ByStored(source, of, m.AddedLabels())
	for _, c := range more {
		by := m.selecting(c)
		m.conflict(conflict{object: c, opponent: by, way: "create the pod with the labels that select it"},
			"%s is selected by labels that %s adds, which itself is selected only by added labels", c, holder(by, "the pod"))
	}
	return out, err
}

// A skip is an object that is skipped because of a conflict.
type skip struct {
	object *plan.Plan
	reason string
	// conflict is nil if an earlier call has decided it.
	conflict *conflict
}

// skippedBefore returns the skippable objects that, according to the pod's annotations,
// were skipped in this generation. An earlier call decided that, and its own changes to
// the pod must not reverse it.
//
// Where exclusion is not allowed, that must have been an earlier call for this request.
func skippedBefore(chosen match.Match, pod *meta.Metadata, b *meta.Budget) (skipped []skip) {
	for _, c := range chosen.Objects {
		skippable := c.Policy == kubeflowv1alpha1.ConflictSkip || c.Policy == kubeflowv1alpha1.ConflictKeepPod
		if !skippable || c.Problem() != nil || c.Audit {
			continue
		}
		mark := c.SkipMark()
		if strings.HasPrefix(pod.Annotations.Get(mark), c.SkipValue("")) && (c.AllowExclude() || !pod.Past(b).Came(mark)) {
			skipped = append(skipped, skip{object: c, reason: "it was before; remove the annotation " + mark + " to have it tried again"})
		}
	}
	return skipped
}

func isSkipped(skipped []skip, c *plan.Plan) bool {
	return slices.ContainsFunc(skipped, func(s skip) bool { return s.object.String() == c.String() })
}

func skippedObjects(skipped []skip) []*plan.Plan {
	var out []*plan.Plan
	for _, s := range skipped {
		out = append(out, s.object)
	}
	return out
}
