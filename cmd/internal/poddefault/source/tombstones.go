// SPDX-License-Identifier: Apache-2.0

package source

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

const (
	// KeptGone is how long such objects are remembered: longer than it takes until
	// another replica leads and has written its state.
	KeptGone = 2 * time.Minute
	// maxGone limits the remembered objects of a namespace.
	maxGone = 1000
)

// gone remembers objects that a watch has seen disappear.
type gone struct {
	now  func() time.Time
	last atomic.Pointer[time.Time] // of the latest; nil for never

	mu      sync.Mutex
	objects map[string][]goneObject // by namespace, oldest first
	swept   time.Time
}

type goneObject struct {
	text                 string
	selector, namespaces labels.Selector
	at                   time.Time
}

// changed records the new state of an object, nil if it was deleted.
func (g *gone) changed(before, now *plan.Plan) {
	if before == nil || !before.Injects() || now != nil && now.Injects() && now.Version() == before.Version() {
		return
	}
	at := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.Sub(g.swept) > KeptGone {
		for namespace := range g.objects {
			g.sweep(namespace, at)
		}
		g.swept = at
	}
	g.objects[before.Namespace()] = append(g.objects[before.Namespace()],
		goneObject{before.Decision() + "#" + before.Version(), before.Selector(), before.NamespaceSelector(), at})
	g.sweep(before.Namespace(), at)
	g.last.Store(&at)
}

func (g *gone) sweep(namespace string, now time.Time) {
	list := g.objects[namespace]
	for len(list) > maxGone || len(list) > 0 && now.Sub(list[0].at) > KeptGone {
		list = list[1:]
	}
	if g.objects[namespace] = list; len(list) == 0 {
		delete(g.objects, namespace)
	}
}

// selected returns the entries of objects that would have selected a pod.
func (g *gone) selected(namespace string, set labels.Set, pod labels.Labels) (texts []string) {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, of := range []string{namespace, ""} {
		for _, o := range g.objects[of] {
			if now.Sub(o.at) <= KeptGone && (o.namespaces == nil || o.namespaces.Matches(set)) && o.selector.Matches(pod) {
				texts = append(texts, o.text)
			}
		}
	}
	return texts
}

// SetClock sets what tells the time, for tests.
func (w *Watcher) SetClock(now func() time.Time) { w.gone.now, w.now = now, now }

// none reports whether nothing disappeared lately. It is cheap.
func (g *gone) none() bool {
	last := g.last.Load()
	return last == nil || g.now().Sub(*last) > KeptGone // clocks may be set in between
}

// Gone returns the entries of [meta.GoneAnnotation] for a pod that is stored with these labels. It is
// for webhooks with a backstop: one replica writes what its policy reads, and for a while there may
// be none.
func (w *Watcher) Gone(namespace string, pod podmeta.Labels) []string {
	if w.gone.none() {
		return nil
	}
	set, _ := w.NamespaceLabels(namespace)
	return w.gone.selected(namespace, set, pod)
}
