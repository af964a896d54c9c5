// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"maps"
	"slices"
	"strings"
	"sync"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
)

// leadership is what the leading replica knows.
type leadership struct {
	watcher *source.Watcher
	wake    func(namespace string)

	mu sync.Mutex
	// conflicts are the PodDefaults with a conflict, by namespace and name.
	conflicts map[string]map[string]openreports.ReportResult
	// reports are the namespaces that have a report, as far as they are known.
	reports map[string]bool
}

func newLeadership(w *source.Watcher, wake func(namespace string)) *leadership {
	return &leadership{watcher: w, wake: wake, conflicts: map[string]map[string]openreports.ReportResult{}, reports: map[string]bool{}}
}

// follow observes the objects until the returned functions are called.
func (l *leadership) follow() (removes []func()) {
	handler := store.Handler[*plan.Plan]{Changed: func(changes []store.Change[*plan.Plan]) {
		for _, c := range changes {
			l.changed(c.Before, c.Now)
		}
	}}
	return []func(){l.watcher.PodDefaults.Handle(handler), l.watcher.ClusterPodDefaults.Handle(handler)}
}

// changed records the conflict of an object, and enqueues the reports that it concerns.
func (l *leadership) changed(before, now *plan.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	object := now
	if now == nil {
		object = before
	}
	replaced := before != nil && (now == nil || now.Generation() != before.Generation())
	if object.Cluster() {
		if replaced {
			for _, namespace := range slices.Sorted(maps.Keys(l.reports)) {
				l.wake(namespace)
			}
		}
		return
	}
	was, is := conflictOf(before), conflictOf(now)
	namespace, name := object.Namespace(), object.Name()
	of := l.conflicts[namespace]
	switch {
	case is == nil:
		if delete(of, name); len(of) == 0 {
			delete(l.conflicts, namespace)
		}
	case of == nil:
		l.conflicts[namespace] = map[string]openreports.ReportResult{name: conflictResult(now, is)}
	default:
		of[name] = conflictResult(now, is)
	}
	if replaced || (was == nil) != (is == nil) || was != nil && was.Message != is.Message {
		l.wake(namespace)
	}
}

// conflictOf returns the condition of an object with a conflict, and otherwise nil.
func conflictOf(c *plan.Plan) *metav1.Condition {
	if c == nil {
		return nil
	}
	condition := apimeta.FindStatusCondition(c.Status().Conditions, kubeflowv1alpha1.ConditionConflicting)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

// reported records which namespaces have a report, and enqueues those that are new.
func (l *leadership) reported(namespaces []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.reports
	l.reports = make(map[string]bool, len(namespaces))
	for _, namespace := range namespaces {
		if l.reports[namespace] = true; !before[namespace] {
			l.wake(namespace)
		}
	}
}

// has records whether a namespace has a report.
func (l *leadership) has(namespace string, report bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if report {
		l.reports[namespace] = true
	} else {
		delete(l.reports, namespace)
	}
}

// state returns what the leader knows about a namespace; nil if another replica leads.
func (l *leadership) state(namespace string) *state {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.conflicts[namespace]
	out := &state{generation: func(decision string) (int64, bool) {
		at := types.NamespacedName{Namespace: namespace, Name: decision}
		if cluster, ok := strings.CutPrefix(decision, meta.ClusterDecision); ok {
			at = types.NamespacedName{Name: cluster}
		}
		object := l.watcher.Get(at)
		if object == nil {
			return 0, false
		}
		return object.Generation(), true
	}}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out.conflicts = append(out.conflicts, of[name])
	}
	return out
}
