// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/use"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// features stand beside the core: what is not here learns of no decision.
type features struct {
	asker   use.Asker
	gone    func(namespace string, pod podmeta.Labels) []string
	decided []func(namespace string, resp *admission.Response)
	found   []func(namespace string, of meta.Workload, findings []merge.Finding)
}

// A Feature of the webhook. Observers must not change what they are given, and are called before the answer is sent.
type Feature func(*features)

// WithUsage asks about pods whose ServiceAccounts need a right to use objects. The setting usage: Check requires it.
func WithUsage(asker use.Asker) Feature { return func(f *features) { f.asker = asker } }

// WithGone has admitted pods tell of objects that selected pods with such labels until recently: see
// [meta.GoneAnnotation].
func WithGone(gone func(namespace string, pod podmeta.Labels) []string) Feature {
	return func(f *features) { f.gone = gone }
}

// WithDecisions observes each response, with the namespace of its request. Dry runs are not observed.
func WithDecisions(observe func(namespace string, resp *admission.Response)) Feature {
	return func(f *features) { f.decided = append(f.decided, observe) }
}

// WithFindings observes the findings about a pod of a workload that is created in a namespace. Dry runs, and pods
// without findings, are not observed.
func WithFindings(observe func(namespace string, of meta.Workload, findings []merge.Finding)) Feature {
	return func(f *features) { f.found = append(f.found, observe) }
}

// tell calls the observers of findings with what find returns.
func (f *features) tell(ctx context.Context, namespace string, pod *meta.Metadata, find func() []merge.Finding) {
	if len(f.found) == 0 || pod.DryRun {
		return
	}
	findings := find()
	if len(findings) == 0 {
		return
	}
	b := meta.NewBudget(ctx)
	for _, observe := range f.found {
		observe(namespace, meta.OfPod(pod, &b), findings)
	}
}
