// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// A Board shows the latest report to the rest of the process. The zero value is ready to
// use.
type Board struct {
	mu     sync.Mutex
	report *Report
	counts map[types.NamespacedName]kubeflowv1alpha1.PodCounts

	counted  control.Listeners[types.NamespacedName]
	exempted control.Listeners[struct{}]
}

// Pods returns the counts of an object, a ClusterPodDefault if there is no namespace, or
// nil if there is no report.
func (b *Board) Pods(name types.NamespacedName) *kubeflowv1alpha1.PodCounts {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.report == nil {
		return nil
	}
	return new(b.counts[name])
}

// Exempted returns how many pods do not carry an object because of an exemption, or nil if
// there is no report.
func (b *Board) Exempted(name types.NamespacedName) *int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.report == nil {
		return nil
	}
	return new(b.report.exempted[name])
}

// HandleExempted calls changed when a result of [Board.Exempted] has changed, until remove
// is called. Changed must not block.
func (b *Board) HandleExempted(changed func()) (remove func()) {
	return b.exempted.Add(func(struct{}) { changed() })
}

// Handle calls changed with each object whose counts have changed, until remove is
// called. Changed must not block.
func (b *Board) Handle(changed func(types.NamespacedName)) (remove func()) {
	return b.counted.Add(changed)
}

// Report returns the latest report, or nil.
func (b *Board) Report() *Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.report
}

// publish shows a report, nil for none.
func (b *Board) publish(r *Report) {
	counts := map[types.NamespacedName]kubeflowv1alpha1.PodCounts{}
	if r != nil {
		for _, c := range r.objects {
			if c.Object != nil {
				counts[c.Object.Identity().NamespacedName] = c.status()
			}
		}
	}
	b.mu.Lock()
	var changed []types.NamespacedName
	for name, now := range counts {
		if b.counts[name] != now {
			changed = append(changed, name)
		}
	}
	for name := range b.counts {
		if _, there := counts[name]; !there {
			changed = append(changed, name)
		}
	}
	exempted := r != nil && (b.report == nil || !maps.Equal(r.exempted, b.report.exempted))
	b.report, b.counts = r, counts
	b.mu.Unlock()
	if exempted {
		b.exempted.Tell(struct{}{})
	}
	if r == nil {
		return
	}
	for _, name := range changed {
		b.counted.Tell(name)
	}
}

func (c *Counts) status() kubeflowv1alpha1.PodCounts {
	of := func(state State) int32 { return int32(min(c.Pods[state], 1<<30)) } // it is limited
	return kubeflowv1alpha1.PodCounts{Current: of(Current), Outdated: of(Outdated), Unknown: of(Unknown), Missing: of(Missing), Missed: of(Missed), Surplus: of(Surplus), Exempt: of(Exempt)}
}
