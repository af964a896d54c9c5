// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// An Observer gets the findings about a pod of a workload that is created in a namespace.
type Observer func(namespace string, of meta.Workload, findings []merge.Finding)

type observerKey struct{}

// WithObserver returns a context in which handlers of this package call an observer. Dry
// runs, and pods without findings, are not observed.
func WithObserver(ctx context.Context, observe Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// tell calls the observer of the call, if there is one, with what find returns.
func tell(ctx context.Context, namespace string, pod *meta.Metadata, find func() []merge.Finding) {
	observe, _ := ctx.Value(observerKey{}).(Observer)
	if observe == nil || pod.DryRun {
		return
	}
	if findings := find(); len(findings) > 0 {
		b := meta.NewBudget(ctx)
		observe(namespace, meta.OfPod(pod, &b), findings)
	}
}
