// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
)

// narrowInterval is how often the label keys in use are checked for changes.
const narrowInterval = 250 * time.Millisecond

// validateNarrow reports settings that exclude each other.
func (s PodDefaultSettings) validateNarrow() error {
	if s.Narrow && s.Freshness == poddefault.Consistent {
		return field.Forbidden(field.NewPath("narrow"),
			"not with the freshness Consistent: a PodDefault with a new label takes effect only when the API server knows the label")
	}
	return nil
}

// narrowing adds a match condition to the webhook for pods that follows the objects in use.
type narrowing struct {
	source interface {
		RequiredKeys() (keys []string, ok bool)
	}
	wanted  func() bool
	current atomic.Pointer[[]string] // nil: every pod is sent
}

// apply returns the definitions with the current condition.
func (n *narrowing) apply(webhooks []admission.Webhook) []admission.Webhook {
	keys := n.current.Load()
	if keys == nil || !n.wanted() {
		return webhooks
	}
	out := slices.Clone(webhooks)
	for i := range out {
		if out[i].Name == poddefault.Name {
			out[i].MatchConditions = append(slices.Clone(out[i].MatchConditions), poddefault.Narrowing(*keys))
		}
	}
	return out
}

// run checks for changed keys until the context ends.
func (n *narrowing) run(ctx context.Context, changed func()) {
	ticker := time.NewTicker(narrowInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if n.wanted() && n.look() {
			changed()
		}
	}
}

// look reports whether the keys have changed.
func (n *narrowing) look() bool {
	keys, ok := n.source.RequiredKeys()
	before := n.current.Load()
	switch {
	case !ok && before == nil, ok && before != nil && slices.Equal(*before, keys):
		return false
	case !ok:
		n.current.Store(nil)
	default:
		n.current.Store(&keys)
	}
	return true
}

// narrow adds the condition to the webhook's component if the settings may need it.
func (b *liveBuiltin) narrow(env frontdoor.Environment, out *frontdoor.Component) {
	l := b.config
	source, ok := b.from.PodDefaults.(*poddefault.Watcher)
	if b.Name != "poddefault" || !ok || l.file == "" && !l.start.Settings.PodDefault.Narrow {
		return
	}
	n := &narrowing{source: source, wanted: func() bool { return l.now().Settings.PodDefault.Narrow }}
	registered, webhooks, run := out.Registered, out.Webhooks, out.Run
	if registered == nil {
		registered = func() []admission.Webhook { return webhooks }
	}
	out.Registered = func() []admission.Webhook { return n.apply(registered()) }
	out.Run = func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		var looking sync.WaitGroup
		looking.Go(func() { n.run(ctx, env.Changed) })
		defer looking.Wait()
		defer stop()
		return run(ctx)
	}
}
