// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/rest"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	configv1alpha1 "github.com/sallyport-io/sallyport/api/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/follow"
)

// reloadInterval is how often the configuration is read even if nothing tells of a
// change, and a configuration is tried again that waits for what it needs.
const reloadInterval = 5 * time.Second

// liveConfig makes ready-made webhooks follow the configuration while serve runs. A
// new one counts as a whole, once all that it needs is there; one with mistakes, or one
// that cannot be read, changes nothing. What is not about ready-made webhooks counts
// from the next start on.
type liveConfig struct {
	options  *serveOptions
	builtins []*liveBuiltin
	interval time.Duration

	logger   *slog.Logger
	changed  func()
	reloads  *prometheus.CounterVec
	good     prometheus.Gauge
	settings atomic.Pointer[builtinSettings]
	indexes  indexes
	detail   atomic.Pointer[string]
}

// liveBuiltin is a ready-made webhook that can be enabled, disabled and changed.
type liveBuiltin struct {
	builtin
	config *liveConfig
	from   builtinSources
	watch  *watcher // nil if it reads nothing

	start   sync.Once
	started chan struct{} // closed when it is wanted for the first time
	state   atomic.Pointer[builtinState]
	paths   map[string]string // that are served since the start, by the webhooks' names
}

// builtinState is what a ready-made webhook is for now.
type builtinState struct {
	enabled  bool
	settings *builtinSettings
	// webhooks are the definitions, while it is enabled.
	webhooks []admission.Webhook
	// handlers are by the webhooks' names. One that is not registered any more keeps its
	// last one: the API server may not know yet.
	handlers map[string]admission.Handler
}

func newLiveConfig(o *serveOptions) *liveConfig {
	l := &liveConfig{options: o, interval: reloadInterval}
	for _, b := range builtins() {
		l.builtins = append(l.builtins, &liveBuiltin{builtin: b, config: l, started: make(chan struct{})})
	}
	return l
}

// component is what follows the file; nothing without one. It is built first.
func (l *liveConfig) component(env frontdoor.Environment) (frontdoor.Component, error) {
	l.logger, l.changed = env.Logger, env.Changed
	l.settings.Store(&l.options.builtin)
	out := frontdoor.Component{Name: "config"}
	if l.options.config == "" {
		return out, nil
	}
	l.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sallyport_config_reloads_total", Help: "Changes of the configuration file, by result: success or failure.",
	}, []string{"result"})
	l.good = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sallyport_config_last_reload_successful", Help: "1 if the configuration file, as it is, counts; 0 if an earlier one does.",
	})
	for _, result := range []string{"success", "failure"} {
		l.reloads.WithLabelValues(result)
	}
	l.good.Set(1)
	if err := errors.Join(env.Metrics.Register(l.reloads), env.Metrics.Register(l.good)); err != nil {
		return out, fmt.Errorf("metrics of the configuration: %w", err)
	}
	out.Ready = func() error { return nil } // an earlier configuration does
	out.Detail = func() string {
		if text := l.detail.Load(); text != nil {
			return *text
		}
		return ""
	}
	out.Run = l.follow
	return out, nil
}

// component is the webhook with what it reads from. Without a file there is nothing
// to it unless it is selected; with one, it may be later.
func (b *liveBuiltin) component(env frontdoor.Environment) (frontdoor.Component, error) {
	o := b.config.options
	out := frontdoor.Component{Name: b.name}
	if o.config == "" && !o.webhooks.has(b.name) {
		return out, nil
	}
	b.from = noSources()
	if b.builtin.watch != nil {
		if err := b.prepareWatch(env, &out); err != nil {
			return out, err
		}
	}
	b.from.indexes = &b.config.indexes
	state, err := b.next(o.webhooks, &o.builtin)
	if err != nil {
		return out, err
	}
	b.state.Store(state)
	if o.config == "" {
		out.Webhooks = state.webhooks
		b.narrow(env, &out)
		return out, nil
	}
	out.Registered = func() []admission.Webhook { return b.state.Load().webhooks }
	// All that it can ever be answers.
	defaults := defaultBuiltinSettings()
	if b.widen != nil {
		b.widen(&defaults)
	}
	all, err := b.webhooks(&defaults, noSources())
	err = errors.Join(err, o.builtin.place(b.name, all))
	b.paths = map[string]string{}
	for i := range all {
		all[i].Handler = liveHandler{b, all[i].Name}
		b.paths[all[i].Name] = all[i].Path
	}
	out.Webhooks = all
	b.narrow(env, &out)
	return out, err
}

// prepareWatch makes what the webhook reads from, which starts when it is wanted.
func (b *liveBuiltin) prepareWatch(env frontdoor.Environment, out *frontdoor.Component) error {
	w, err := b.builtin.watch(env)
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
			Help: "When the API server has sent something about " + w.what + " the last time, in seconds since 1970; 0 if never. It does so about once a minute even if nothing changes.",
		}, func() float64 { return seconds(w.contact()) })))
	}
	if err != nil {
		return fmt.Errorf("metrics of %s: %w", b.name, err)
	}
	b.watch, b.from = &w, w.sources
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

// next is what the webhook is to be with these settings.
func (b *liveBuiltin) next(selection builtinSelection, settings *builtinSettings) (*builtinState, error) {
	state := &builtinState{enabled: selection.has(b.name), settings: settings, handlers: map[string]admission.Handler{}}
	if now := b.state.Load(); now != nil {
		maps.Copy(state.handlers, now.handlers)
	}
	if !state.enabled {
		return state, nil
	}
	var err error
	if state.webhooks, err = b.define(settings, b.from); err != nil {
		return nil, fmt.Errorf("webhook %s: %w", b.name, err)
	}
	for i := range state.webhooks {
		webhook := &state.webhooks[i]
		state.handlers[webhook.Name] = webhook.Handler
		if path, served := b.paths[webhook.Name]; served {
			webhook.Path = path
		}
	}
	b.start.Do(func() { close(b.started) }) // what it reads from
	return state, nil
}

// ready tells whether what it reads from in a state has been read.
func (b *liveBuiltin) ready(state *builtinState) error {
	if b.watch == nil {
		return nil
	}
	err := b.watch.ready()
	if err == nil && b.needs != nil {
		err = b.needs(state.settings, b.from)
	}
	return err
}

// liveHandler answers by what a webhook is for now.
type liveHandler struct {
	builtin *liveBuiltin
	name    string
}

// Handle implements [admission.Handler].
func (h liveHandler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	handler := h.builtin.state.Load().handlers[h.name]
	if handler == nil {
		// Another replica has read a newer configuration, and registered it: that one can
		// answer, and this one will in a moment.
		return nil, admission.Unavailable(fmt.Errorf("the webhook %s is not enabled here", h.name), time.Second)
	}
	return handler.Handle(ctx, req)
}

// follow reads the file whenever it may have changed.
func (l *liveConfig) follow(ctx context.Context) error {
	last := l.options.read
	var pending func() bool // a configuration that waits for what it needs
	follow.Files(ctx, l.logger, "the configuration", l.interval, func() {
		data, err := os.ReadFile(l.options.config)
		if err == nil && bytes.Equal(data, last) || err != nil && last == nil {
			if pending != nil && pending() {
				pending = nil
			}
			return
		}
		last, pending = data, nil
		if err == nil {
			var next *serveOptions
			if next, pending, err = l.load(); next.read != nil {
				last = next.read
			}
		}
		if err != nil {
			l.fail(err)
		} else if pending() {
			pending = nil
		}
	}, l.options.config)
	return nil
}

// fail says that the configuration does not count.
func (l *liveConfig) fail(err error) {
	l.reloads.WithLabelValues("failure").Inc()
	l.good.Set(0)
	l.say("the file is not good, an earlier one counts; see the log")
	l.logger.Error("the configuration is not good: an earlier one goes on to count", "file", l.options.config, "error", err)
}

func (l *liveConfig) say(text string) { l.detail.Store(&text) }

// load reads the file as a start with the same flags would, and returns what makes it
// count: it is false as long as something that is needed has not been read yet. Next is
// what was read, also after an error.
func (l *liveConfig) load() (next *serveOptions, count func() bool, err error) {
	cmd, o, app := newServe()
	if app == nil {
		return o, nil, cmd.RunE(cmd, nil)
	}
	if err := copyFlags(l.options.cmd.Flags(), cmd.Flags()); err != nil {
		return o, nil, err
	}
	o.settings.Client = &rest.Config{} // that was found at the start
	if err := o.prepare(cmd, app); err != nil {
		return o, nil, err
	}
	later, err := l.later(cmd.Flags(), &o.builtin)
	if err != nil {
		return o, nil, err
	}
	states := make([]*builtinState, len(l.builtins))
	for i, b := range l.builtins {
		if states[i], err = b.next(o.webhooks, &o.builtin); err != nil {
			return o, nil, err
		}
	}
	told := false
	return o, func() bool {
		for i, b := range l.builtins {
			if err := b.ready(states[i]); states[i].enabled && err != nil {
				if !told {
					l.say("the file waits for what it needs: " + err.Error())
					l.logger.Info("the configuration waits for what it needs", "file", l.options.config, "webhook", b.name, "reason", err)
				}
				told = true
				return false
			}
		}
		l.settings.Store(&o.builtin)
		for i, b := range l.builtins {
			b.state.Store(states[i])
		}
		l.reloads.WithLabelValues("success").Inc()
		l.good.Set(1)
		l.say(later)
		enabled := []string{}
		for _, b := range o.webhooks.enabled() {
			enabled = append(enabled, b.name)
		}
		l.logger.Info("the configuration has changed", "file", l.options.config, "webhooks", strings.Join(enabled, ","), "note", later)
		l.changed()
		return true
	}, nil
}

// later says which sections have changed that count from the next start on.
func (l *liveConfig) later(now *pflag.FlagSet, settings *builtinSettings) (string, error) {
	var was, is configv1alpha1.SallyportConfiguration
	if err := errors.Join(fromFlags(l.options.cmd.Flags(), reflect.ValueOf(&was).Elem()), fromFlags(now, reflect.ValueOf(&is).Elem())); err != nil {
		return "", err
	}
	var sections []string
	for field := range reflect.TypeFor[configv1alpha1.SallyportConfiguration]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !reflect.DeepEqual(reflect.ValueOf(was).FieldByIndex(field.Index).Interface(), reflect.ValueOf(is).FieldByIndex(field.Index).Interface()) {
			sections = append(sections, name)
		}
	}
	for _, name := range allBuiltinNames() {
		path := func(s *builtinSettings) string {
			if entry := s.entry(name); entry != nil && entry.Path != nil {
				return *entry.Path
			}
			return ""
		}
		if path(settings) != path(&l.options.builtin) {
			sections = append(sections, "the path of "+name)
		}
	}
	if len(sections) == 0 {
		return "", nil
	}
	slices.Sort(sections)
	return "changes of " + strings.Join(sections, ", ") + " count from the next start on", nil
}

// copyFlags sets the flags that were given.
func copyFlags(from, to *pflag.FlagSet) error {
	var errs []error
	from.Visit(func(given *pflag.Flag) {
		flag := to.Lookup(given.Name)
		if flag == nil {
			return
		}
		if list, ok := given.Value.(pflag.SliceValue); ok {
			errs = append(errs, flag.Value.(pflag.SliceValue).Replace(list.GetSlice()))
		} else {
			errs = append(errs, flag.Value.Set(given.Value.String()))
		}
		flag.Changed = true
	})
	return errors.Join(errs...)
}

// adjust is [builtinSettings.adjust] of what counts now.
func (l *liveConfig) adjust(w *admission.Webhook) {
	if settings := l.settings.Load(); settings != nil {
		settings.adjust(w)
	}
}

// seconds is a time as metrics have it.
func seconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMicro()) / 1e6
}
