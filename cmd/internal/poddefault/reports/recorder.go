// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"slices"
	"sync"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// maxRemembered limits the findings that a replica remembers, with all namespaces.
const maxRemembered = 10_000

// A Recorder has the findings of this replica until a [Controller] has written them. The
// zero value is ready to use.
type Recorder struct {
	mu      sync.Mutex
	pending map[string]*pending // by namespace
	waiting int                 // results in all of them
	// told are the findings that need not be written for a while.
	told map[toldKey]told
	wake func(namespace string)
}

type pending struct {
	results map[key]openreports.ReportResult
	leftOut int
}

type toldKey struct {
	namespace string
	key
}

type told struct {
	at   time.Time
	says says
}

type says struct {
	result             openreports.Result
	message, dependsOn string
}

func saysOf(r *openreports.ReportResult) says {
	return says{r.Result, r.Description, r.Properties[dependsOnProperty]}
}

// Record records findings about a pod of a workload, unless it did so recently.
func (r *Recorder) Record(namespace string, of meta.Workload, findings []merge.Finding) {
	now := time.Now()
	results := make([]openreports.ReportResult, 0, len(findings))
	for i := range findings {
		results = append(results, findingResult(namespace, of, &findings[i], now))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range results {
		r.addResult(namespace, &results[i], now)
	}
}

func (r *Recorder) addResult(namespace string, result *openreports.ReportResult, now time.Time) {
	k := toldKey{namespace, keyOf(result)}
	if before, there := r.told[k]; there && now.Sub(before.at) < refresh && before.says == saysOf(result) {
		return
	}
	if r.told == nil || len(r.told) >= maxRemembered {
		r.told = map[toldKey]told{} // costs writes at most
	}
	r.told[k] = told{now, saysOf(result)}
	if r.pending[namespace] == nil && r.wake != nil {
		r.wake(namespace)
	}
	r.put(r.of(namespace), result)
}

// of returns what is pending in a namespace.
func (r *Recorder) of(namespace string) *pending {
	if r.pending == nil {
		r.pending = map[string]*pending{}
	}
	if r.pending[namespace] == nil {
		r.pending[namespace] = &pending{results: map[key]openreports.ReportResult{}}
	}
	return r.pending[namespace]
}

// put adds a result. Without room the oldest one of the namespace is left out.
func (r *Recorder) put(ns *pending, result *openreports.ReportResult) {
	if _, there := ns.results[keyOf(result)]; !there {
		r.waiting++
	}
	ns.results[keyOf(result)] = *result
	if len(ns.results) <= maxResults && r.waiting <= maxRemembered {
		return
	}
	oldest := result
	for _, one := range ns.results {
		if newestFirst(*oldest, one) < 0 {
			oldest = &one
		}
	}
	delete(ns.results, keyOf(oldest))
	r.waiting--
	ns.leftOut++
}

// take returns what is pending in a namespace, which [Recorder.give] returns if it could
// not be written.
func (r *Recorder) take(namespace string) *pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	ns := r.pending[namespace]
	if ns == nil {
		return &pending{}
	}
	delete(r.pending, namespace)
	r.waiting -= len(ns.results)
	return ns
}

// give puts back what was taken. What was found since then is newer.
func (r *Recorder) give(namespace string, taken *pending) {
	if len(taken.results)+taken.leftOut == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ns := r.of(namespace)
	ns.leftOut += taken.leftOut
	for k, result := range taken.results {
		if _, newer := ns.results[k]; !newer {
			r.put(ns, &result)
		}
	}
}

// found returns the results in an order.
func (p *pending) found() found {
	out := found{leftOut: p.leftOut}
	for _, r := range p.results {
		out.results = append(out.results, r)
	}
	slices.SortFunc(out.results, newestFirst)
	return out
}

// notify calls wake with each namespace that has something to write, now and later.
func (r *Recorder) notify(wake func(namespace string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake = wake
	for namespace := range r.pending {
		wake(namespace)
	}
}
