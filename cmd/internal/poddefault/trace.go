// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// A Trace has what became of the objects of a pod, as the decision knew it. Of several calls for one request, the first
// that decided about an object counts: the others find what that one has left. The zero value is that of a pod about which
// no handler of this package decided.
type Trace struct {
	reasons map[string]match.Reason // by the title of the object
	view    *match.View             // of the first call
}

// Of returns what became of an object of the namespace or of the cluster.
func (t *Trace) Of(c *plan.Plan) match.Reason {
	r, known := t.reasons[c.String()]
	switch {
	case t.view == nil:
		return match.Reason{Object: c, Why: match.NotCalled}
	case !known:
		r = match.Reason{Object: c, Why: match.NotSelected}
	}
	return t.view.Complete(r)
}

// Selected yields what became of each object that selects the pod, or would, by title.
func (t *Trace) Selected() iter.Seq[match.Reason] {
	return func(yield func(match.Reason) bool) {
		for _, title := range slices.Sorted(maps.Keys(t.reasons)) {
			if !yield(t.reasons[title]) {
				return
			}
		}
	}
}

type traceKey struct{}

// WithTrace returns a context in which handlers of this package fill in a trace. It is for commands: a server's
// calls have none.
func WithTrace(ctx context.Context, trace *Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, trace)
}

// traced fills in the trace of the call, if it has one: of a pod that was sent to a namespace with labels, and its match.
// Without objects to merge m is nil.
func (h *handler) traced(ctx context.Context, source match.Source, namespace string, sent podmeta.Labels, m *merge.Merge, of match.Match) {
	trace, _ := ctx.Value(traceKey{}).(*Trace)
	if trace == nil {
		return
	}
	if trace.view == nil {
		trace.view, trace.reasons = match.NewView(source, namespace, sent, m.AddedLabels(), h.excluded), map[string]match.Reason{}
	}
	for _, r := range m.Reasons(of) {
		if _, known := trace.reasons[r.Object.String()]; !known {
			trace.reasons[r.Object.String()] = r
		}
	}
}
