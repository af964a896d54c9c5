// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
)

// liveBuiltin is a built-in webhook that can be enabled, disabled and changed at run time.
type liveBuiltin struct {
	Builtin
	config *liveConfig
	from   Sources  // its own
	watch  *watcher // nil if it reads nothing
	// running is [Builtin.running].
	running any

	begin   sync.Once
	started chan struct{} // closed when it is first enabled
	state   atomic.Pointer[builtinState]
	paths   map[string]string // paths served since the start, by webhook name
}

// builtinState is the current state of a built-in webhook.
type builtinState struct {
	enabled bool
	config  *Config
	// webhooks are the definitions while it is enabled.
	webhooks []admission.Webhook
	// handlers are keyed by webhook name. A webhook that is no longer registered keeps its last
	// handler, because the API server may not have observed the change.
	handlers map[string]admission.Handler
}

// component is the webhook with its sources. Without a file it is empty unless the webhook is
// enabled. With a file the webhook may be enabled later.
func (b *liveBuiltin) component(env frontdoor.Environment) (frontdoor.Component, error) {
	l := b.config
	out := frontdoor.Component{Name: b.Name}
	if l.file == "" && !l.start.Has(b.Name) {
		return out, nil
	}
	if b.unreachable() != nil {
		b.state.Store(&builtinState{config: l.start})
		return out, nil
	}
	if b.Builtin.watch != nil {
		if err := b.prepareWatch(env, &out); err != nil {
			return out, err
		}
	}
	state, err := b.next(l.start)
	if err != nil {
		return out, err
	}
	b.state.Store(state)
	if l.file == "" {
		out.Webhooks = state.webhooks
		return out, nil
	}
	out.Registered = func() []admission.Webhook { return b.state.Load().webhooks }
	// Serve every path that the webhook can ever have.
	all, err := b.all()
	err = errors.Join(err, b.place(l.start.entry(b.Name), all))
	b.paths = map[string]string{}
	for i := range all {
		all[i].Handler = liveHandler{b, all[i].Name}
		b.paths[all[i].Name] = all[i].Path
	}
	out.Webhooks = all
	return out, err
}

// prepareWatch creates the webhook's sources, which start when it is first enabled.
func (b *liveBuiltin) prepareWatch(env frontdoor.Environment, out *frontdoor.Component) error {
	w, err := b.Builtin.watch(b, env)
	if err != nil {
		return err
	}
	count := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sallyport_" + w.what, Help: w.help,
	}, func() float64 { return float64(w.count()) })
	err = env.Metrics.Register(count)
	if w.contact != nil {
		err = errors.Join(err, env.Metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sallyport_" + w.what + "_last_contact_timestamp_seconds",
			Help: "When the API server last sent something about " + w.what + ", in seconds since 1970; 0 if never. It does so about once a minute even if nothing changes.",
		}, func() float64 { return seconds(w.contact()) })))
	}
	if err != nil {
		return fmt.Errorf("metrics of %s: %w", b.Name, err)
	}
	b.watch, b.from = &w, From(w.sources)
	out.Name = w.what
	out.Status = func() slog.Attr { return slog.Int(w.what, w.count()) }
	out.Ready = func() error {
		state := b.state.Load()
		if !state.enabled {
			return nil
		}
		return b.ready(state)
	}
	out.Run = func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-b.started:
			return w.run(ctx)
		}
	}
	return nil
}

// next returns the webhook's state under a configuration.
func (b *liveBuiltin) next(c *Config) (*builtinState, error) {
	state := &builtinState{enabled: c.Has(b.Name), config: c, handlers: map[string]admission.Handler{}}
	if now := b.state.Load(); now != nil {
		maps.Copy(state.handlers, now.handlers)
	}
	if !state.enabled {
		return state, nil
	}
	if err := b.unreachable(); err != nil {
		return nil, err
	}
	var err error
	if state.webhooks, err = b.defined(c, b.config.sources()); err != nil {
		return nil, fmt.Errorf("webhook %s: %w", b.Name, err)
	}
	for i := range state.webhooks {
		webhook := &state.webhooks[i]
		state.handlers[webhook.Name] = webhook.Handler
		if path, served := b.paths[webhook.Name]; served {
			webhook.Path = path
		}
	}
	if err := b.answerAtPath(state); err != nil {
		return nil, err
	}
	b.begin.Do(func() { close(b.started) }) // start its sources
	return state, nil
}

// sources returns what the built-in webhooks read from, as far as they are made.
func (l *liveConfig) sources() Sources {
	all := NoSources()
	for _, b := range l.builtins {
		maps.Copy(all, b.from)
	}
	return all
}

// ready reports whether the sources of a state have been read.
func (b *liveBuiltin) ready(state *builtinState) error {
	if b.watch == nil {
		return nil
	}
	err := b.watch.ready()
	if err == nil && b.needs != nil {
		err = b.needs(state.config, b.from)
	}
	return err
}

// liveHandler answers with a webhook's current handler.
type liveHandler struct {
	builtin *liveBuiltin
	name    string
}

// Handle implements [admission.Handler].
func (h liveHandler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	handler := h.builtin.state.Load().handlers[h.name]
	if handler == nil {
		// Another replica has read a newer configuration and registered the webhook. That
		// replica can answer now, this one in a moment.
		return nil, admission.Unavailable(fmt.Errorf("the webhook %s is not enabled here", h.name), time.Second)
	}
	return h.builtin.config.recorder.Handle(ctx, h.name, req, handler)
}

// seconds converts a time for metrics.
func seconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMicro()) / 1e6
}
