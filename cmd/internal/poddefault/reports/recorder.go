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
	ns := r.pending[namespace]
	if ns == nil {
		ns = &pending{results: map[key]openreports.ReportResult{}}
		if r.pending == nil {
			r.pending = map[string]*pending{}
		}
		r.pending[namespace] = ns
		if r.wake != nil {
			r.wake(namespace)
		}
	}
	switch _, there := ns.results[k.key]; {
	case there:
		ns.results[k.key] = *result
	case len(ns.results) < maxResults && r.waiting < maxRemembered:
		ns.results[k.key] = *result
		r.waiting++
	case len(ns.results) > 0:
		delete(ns.results, oldest(ns.results))
		ns.results[k.key] = *result
		ns.leftOut++
	default:
		ns.leftOut++
	}
}

func oldest(results map[key]openreports.ReportResult) key {
	var out *openreports.ReportResult
	for _, r := range results {
		if out == nil || newestFirst(*out, r) < 0 {
			out = &r
		}
	}
	return keyOf(out)
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
	since := r.pending[namespace]
	if r.pending[namespace] = taken; since != nil {
		r.waiting -= len(since.results)
		taken.leftOut += since.leftOut
		for k, result := range since.results {
			if _, there := taken.results[k]; !there && len(taken.results) >= maxResults {
				delete(taken.results, oldest(taken.results))
				taken.leftOut++
			}
			taken.results[k] = result
		}
	}
	r.waiting += len(taken.results)
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
