// SPDX-License-Identifier: Apache-2.0

// Package drift compares running pods with the PodDefaults and ClusterPodDefaults of
// today: which pods carry which revision of them, which should carry one and do not, which
// are exempt, and which carry one that is not for them any more.
//
// A pod gets objects when it is created and never later, so it drifts whenever an object,
// or a label that selects it, changes. The comparison reads the annotations in which the
// webhook records its decisions. It does not merge: an object that was skipped, or that
// conflicts with the pod, is still due.
package drift

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// A State says how a pod relates to an object.
type State string

// The states. A pod and an object have at most one.
const (
	Current  State = "current"  // the pod carries the current revision
	Outdated State = "outdated" // it carries an earlier revision
	Unknown  State = "unknown"  // it carries a revision that its mark does not identify
	Missing  State = "missing"  // the pod should carry the object and does not: it is older than the object
	Missed   State = "missed"   // the pod should carry the object, is not older than it, and the webhook did not decide about the pod
	Surplus  State = "surplus"  // the pod carries the object and should not
	Exempt   State = "exempt"   // the pod would be missing the object if it were not exempt
)

// States returns all states.
func States() []State { return []State{Current, Outdated, Unknown, Missing, Missed, Surplus, Exempt} }

// Carried reports whether a pod in this state carries the object.
func (s State) Carried() bool { return s != Missing && s != Missed && s != Exempt }

// Source provides the objects. [source.Index] and [source.Watcher] implement it.
type Source interface {
	match.Source
	// All returns the PodDefaults of a namespace, or the ClusterPodDefaults if it is empty.
	All(namespace string) []*plan.Plan
}

// A Pod is the part of a pod that the comparison needs.
type Pod struct {
	Namespace           string
	Labels, Annotations map[string]string
	// Workload is that of [meta.WorkloadOf].
	Workload string
	// NotAsked is set if the API server does not send such pods to the webhook.
	NotAsked bool
}

// A Finding says how the pod relates to one object.
type Finding struct {
	State State
	// Title names the object, which is nil if it does not exist any more.
	Title  string
	Object *plan.Plan
	// Revision is the one that the pod carries; empty if it carries none, or does
	// not record one.
	Revision string
	// By exempts the pod from the object, whether or not it carries it. Nil if nothing does.
	By *exempt.Exemption
}

// At returns the findings about a pod that was created at that time and has these annotations. Findings of
// [Judge.Pod] are those about a pod of any age, which many pods share: what the pod does not carry, it may
// be too old for, or it has passed injection. It does not change findings.
func At(created time.Time, annotations map[string]string, findings []Finding) []Finding {
	passed := func(f Finding) bool {
		return f.State == Missing && !created.Before(f.Object.ChangedAt())
	}
	if _, decided := annotations[meta.DecisionsAnnotation]; decided || !slices.ContainsFunc(findings, passed) {
		return findings
	}
	findings = slices.Clone(findings)
	for i := range findings {
		if passed(findings[i]) {
			findings[i].State = Missed
		}
	}
	return findings
}

// Judge compares pods with objects. It reads the objects of a namespace once. See [poddefault.New].
type Judge struct {
	source Source
	marked map[string]map[string]*plan.Plan // objects of a namespace by mark
}

// New returns a judge of the objects as they are now.
func New(source Source) *Judge {
	return &Judge{source, map[string]map[string]*plan.Plan{}}
}

// of returns the objects of a namespace, the empty one for ClusterPodDefaults, by mark.
func (j *Judge) of(namespace string) map[string]*plan.Plan {
	known, read := j.marked[namespace]
	if !read {
		known = map[string]*plan.Plan{}
		for _, c := range j.source.All(namespace) {
			known[c.Mark()] = c
		}
		j.marked[namespace] = known
	}
	return known
}

// Pod returns the findings about a pod, ordered by title. An error says why such a pod
// would be refused, or that the source is not ready.
func (j *Judge) Pod(ctx context.Context, pod Pod) ([]Finding, error) {
	found := map[string]Finding{} // by title
	marks := map[string]meta.CarriedMark{}
	var carried []*plan.Plan
	for _, mark := range meta.Marks(pod.Annotations) {
		f := Finding{State: Surplus, Title: mark.Title(pod.Namespace), Revision: mark.Revision}
		of := pod.Namespace
		if mark.Cluster {
			of = ""
		}
		if f.Object = j.of(of)[mark.Annotation]; f.Object != nil {
			f.Title = f.Object.String()
			carried = append(carried, f.Object)
		}
		found[f.Title], marks[f.Title] = f, mark
	}
	var due []*plan.Plan
	var exempted []match.Exempted
	if !pod.NotAsked {
		var err error
		if due, exempted, err = match.DueToStored(ctx, j.source, pod.Namespace, pod.Workload, pod.Labels, pod.Annotations, carried); err != nil {
			return nil, err
		}
	}
	for _, c := range due {
		f, carries := found[c.String()]
		switch {
		case !carries && c.PassedOver(pod.Annotations):
			continue
		case !carries:
			f = Finding{State: Missing, Title: c.String(), Object: c}
		case c.Wrote(marks[f.Title]):
			f.State = Current
		case f.Revision == "":
			f.State = Unknown
		default:
			f.State = Outdated
		}
		found[f.Title] = f
	}
	for _, e := range exempted {
		f, carries := found[e.String()]
		if !carries {
			f = Finding{State: Exempt, Title: e.String(), Object: e.Plan}
		}
		f.By = e.By
		found[f.Title] = f
	}
	return slices.SortedStableFunc(maps.Values(found), func(a, b Finding) int { return strings.Compare(a.Title, b.Title) }), nil
}
