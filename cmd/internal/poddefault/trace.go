// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
)

// A Trace has what became of each object that selects a pod, or would, as the decision knew it. Of several calls
// for one request, the first that decided about an object counts: the others find what that one has left.
type Trace map[string]match.Reason // by the title of the object

type traceKey struct{}

// WithTrace returns a context in which handlers of this package fill in a trace. It is for commands: a server's
// calls have none.
func WithTrace(ctx context.Context, trace Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, trace)
}

// traced fills in the trace of the call, if it has one. Without objects to merge m is nil.
func traced(ctx context.Context, m *merge.Merge, of match.Match) {
	trace, _ := ctx.Value(traceKey{}).(Trace)
	if trace == nil {
		return
	}
	for _, r := range m.Reasons(of) {
		if _, known := trace[r.Object.String()]; !known {
			trace[r.Object.String()] = r
		}
	}
}
