// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/store"
)

// Counts are the pods of one object by state.
type Counts struct {
	Title string
	// Object is nil if it does not exist any more.
	Object *plan.Plan
	Pods   map[State]int
	// Revisions counts the pods that carry the object by its revision; "" is one that their
	// marks do not identify.
	Revisions map[string]int
}

// A Report counts running pods by object and state.
type Report struct {
	objects map[string]*Counts // by title
	// Pods is the number of pods. Undecided are those without findings, because they would
	// be refused.
	Pods, Undecided int
	// exempted counts pods that do not carry an object because of an exemption.
	exempted map[types.NamespacedName]int32
	// ends is when the first of the exemptions ends that concern a pod; zero without any.
	ends time.Time
}

// NewReport returns an empty report.
func NewReport() *Report {
	return &Report{objects: map[string]*Counts{}, exempted: map[types.NamespacedName]int32{}}
}

// Add counts a number of pods with the same findings.
func (r *Report) Add(findings []Finding, pods int) {
	r.Pods += pods
	r.exempt(findings, pods)
	for _, f := range findings {
		c := r.objects[f.Title]
		if c == nil {
			c = &Counts{Title: f.Title, Object: f.Object, Pods: map[State]int{}, Revisions: map[string]int{}}
			r.objects[f.Title] = c
		}
		c.Pods[f.State] += pods
		if f.By != nil && (r.ends.IsZero() || f.By.Until.Before(r.ends)) {
			r.ends = f.By.Until
		}
		if f.State.Carried() {
			c.Revisions[f.Revision] += pods
		}
	}
}

// exempt counts a number of pods once for each exemption that they use.
func (r *Report) exempt(findings []Finding, pods int) {
	var used []*exempt.Exemption // of most pods none
	for _, f := range findings {
		if f.State == Exempt && !slices.Contains(used, f.By) {
			used = append(used, f.By)
			r.exempted[types.NamespacedName{Namespace: f.By.Namespace, Name: f.By.Name}] += int32(min(pods, 1<<30)) // it is limited
		}
	}
}

// addEach counts pods of one class, which may differ in age.
func (r *Report) addEach(findings []Finding, annotations map[string]string, pods []*store.Pod) {
	if !slices.ContainsFunc(findings, func(f Finding) bool { return f.State == Missing }) {
		r.Add(findings, len(pods))
		return
	}
	for _, pod := range pods {
		r.Add(At(pod.Created(), annotations, findings), 1)
	}
}

// AddUndecided counts pods that would be refused.
func (r *Report) AddUndecided(pods int) {
	r.Pods += pods
	r.Undecided += pods
}

// Objects returns the counts of each object that concerns a pod, ordered by title.
func (r *Report) Objects() []*Counts {
	return slices.SortedFunc(maps.Values(r.objects), func(a, b *Counts) int { return strings.Compare(a.Title, b.Title) })
}

// Of returns the counts of an object, empty if no pod concerns it.
func (r *Report) Of(title string) Counts {
	if c := r.objects[title]; c != nil {
		return *c
	}
	return Counts{Title: title}
}

// A class is what the findings about a pod depend on. Most pods of a workload share one.
type class struct {
	namespace string
	workload  string
	facts     store.Facts
	excluded  bool
}

// report compares all pods with the objects as they are now. asked reports whether the API
// server sends pods of a namespace with these labels to the webhook.
func report(ctx context.Context, source Source, pods []*store.Pod, asked func(namespace string, labels map[string]string) bool) *Report {
	classes := map[class][]*store.Pod{}
	for _, pod := range pods {
		if !pod.Terminating {
			one := class{pod.Namespace, pod.Workload, pod.Facts, pod.Excluded}
			classes[one] = append(classes[one], pod)
		}
	}
	out, judge := NewReport(), New(source)
	for one, members := range classes {
		if ctx.Err() != nil {
			break
		}
		pod := Pod{Namespace: one.namespace, Workload: one.workload}
		pod.Labels, pod.Annotations = one.facts.Read()
		pod.NotAsked = one.excluded || !asked(one.namespace, pod.Labels)
		if findings, err := judge.Pod(ctx, pod); err != nil {
			out.AddUndecided(len(members))
		} else {
			out.addEach(findings, pod.Annotations, members)
		}
	}
	return out
}
