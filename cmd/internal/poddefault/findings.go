// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"slices"
	"strings"
)

// A Verdict is what the webhook decided about a pod because of an object.
type Verdict string

// The verdicts. All but the first are about objects in mode Audit.
const (
	Refused      Verdict = "Refused"      // the pod was denied
	WouldApply   Verdict = "WouldApply"   // the object would have been applied
	WouldNot     Verdict = "WouldNot"     // it would have conflicted, or been left out
	NotEvaluated Verdict = "NotEvaluated" // the pod and its objects are too large to find out
)

// A Finding is a verdict with its reason. Its text contains no values.
type Finding struct {
	Object *Compiled
	// Others are the objects that the verdict depends on too.
	Others  []*Compiled
	Verdict Verdict
	Text    string
}

// DependsOn lists the objects that the verdict depends on, with their generations:
// "a@1,cluster/b@7".
func (f *Finding) DependsOn() string {
	return generations(append([]*Compiled{f.Object}, f.Others...))
}

// An Observer gets the findings about a pod of a workload that is created in a namespace.
type Observer func(namespace string, of Workload, findings []Finding)

type observerKey struct{}

// WithObserver returns a context in which handlers of this package call an observer. Dry
// runs, and pods without findings, are not observed.
func WithObserver(ctx context.Context, observe Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// tell calls the observer of the call, if there is one, with what find returns.
func tell(ctx context.Context, namespace string, pod *metadata, find func() []Finding) {
	observe, _ := ctx.Value(observerKey{}).(Observer)
	if observe == nil || pod.dryRun {
		return
	}
	if findings := find(); len(findings) > 0 {
		b := newBounds(ctx)
		observe(namespace, workloadOf(pod, &b), findings)
	}
}

// refusals returns a finding for each object because of which the pod is denied.
func (m *merge) refusals() []Finding {
	var findings []Finding
	var texts [][]string // of each finding
	for _, c := range m.conflicts {
		i := slices.IndexFunc(findings, func(f Finding) bool { return f.Object.title == c.object.title })
		if i < 0 {
			if len(findings) == maxTold {
				continue
			}
			i = len(findings)
			findings, texts = append(findings, Finding{Object: c.object, Verdict: Refused}), append(texts, nil)
		}
		texts[i] = append(texts[i], c.text)
		findings[i].dependsOn(c.opponent)
	}
	for i := range findings {
		findings[i].Text = strings.Join(texts[i], "; ")
	}
	return findings
}

// dependsOn adds an object, nil for none, unless it is there.
func (f *Finding) dependsOn(other *Compiled) {
	if other != nil && other.title != f.Object.title && !slices.ContainsFunc(f.Others, func(c *Compiled) bool { return c.title == other.title }) {
		f.Others = append(f.Others, other)
	}
}

// refusalsOf returns a finding for each object because of which the pod is denied.
func refusalsOf(e *excess) []Finding {
	objects := e.all
	if e.object != nil {
		objects = []*Compiled{e.object}
	}
	var findings []Finding
	for _, c := range objects[:min(len(objects), maxTold)] {
		findings = append(findings, Finding{Object: c, Verdict: Refused, Text: e.text})
	}
	return findings
}
