// SPDX-License-Identifier: Apache-2.0

package serve

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
	admissionv1 "k8s.io/api/admission/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/recording"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/follow"
	"github.com/sallyport-io/sallyport/internal/store"
)

// reloadInterval is how often the configuration is read even without a file event, and how
// often a configuration that waits for its objects is retried.
const reloadInterval = 5 * time.Second

// liveConfig makes the built-in webhooks follow the configuration while serve runs. A new
// configuration takes effect as a whole once everything it needs has been read. An invalid or
// unreadable one changes nothing. Sections other than the built-in webhooks take effect at the
// next start.
type liveConfig struct {
	file     string         // empty without a file to follow
	given    *setting.Given // flags that override it
	start    *Config        // the configuration at the start
	builtins []*liveBuiltin
	interval time.Duration
	// noCluster is set if the server has no client, and needed none at the start.
	noCluster bool

	logger   *slog.Logger
	changed  func()
	cluster  *store.Factory      // the source of built-in webhooks and controllers
	recorder *recording.Recorder // nil if reviews are not recorded
	reloads  *prometheus.CounterVec
	good     prometheus.Gauge
	current  atomic.Pointer[Config]
	detail   atomic.Pointer[string]
}

// liveBuiltin is a built-in webhook that can be enabled, disabled and changed at run time.
type liveBuiltin struct {
	Builtin
	config *liveConfig
	from   Sources
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

func newLiveConfig(file string, given *setting.Given, start *Config) *liveConfig {
	l := &liveConfig{file: file, given: given, start: start, interval: reloadInterval}
	l.current.Store(start)
	for _, b := range Builtins() {
		live := &liveBuiltin{Builtin: b, config: l, started: make(chan struct{})}
		if b.running != nil {
			live.running = b.running()
		}
		l.builtins = append(l.builtins, live)
	}
	return l
}

// now returns the current configuration.
func (l *liveConfig) now() *Config { return l.current.Load() }

// recording returns the component that records a sample of reviews.
func (l *liveConfig) recording(env frontdoor.Environment) (frontdoor.Component, error) {
	out := frontdoor.Component{Name: "recording"}
	var err error
	if l.recorder, err = recording.New(l.start.Recording, env.Logger, env.Metrics); err != nil {
		return out, fmt.Errorf("recording: %w", err)
	}
	if l.recorder != nil {
		out.Run = l.recorder.Run
	}
	return out, nil
}

// component follows the file. It is empty without one, and is built first.
func (l *liveConfig) component(env frontdoor.Environment) (frontdoor.Component, error) {
	l.logger, l.changed, l.cluster = env.Logger, env.Changed, store.NewFactory(env.Client, env.Logger)
	out := frontdoor.Component{Name: "config"}
	if l.file == "" {
		return out, nil
	}
	l.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sallyport_config_reloads_total", Help: "Changes of the configuration file, by result: success or failure.",
	}, []string{"result"})
	l.good = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sallyport_config_last_reload_successful", Help: "1 if the current configuration file is in effect, 0 if an earlier version of it is.",
	})
	for _, result := range []string{"success", "failure"} {
		l.reloads.WithLabelValues(result)
	}
	l.good.Set(1)
	if err := errors.Join(env.Metrics.Register(l.reloads), env.Metrics.Register(l.good)); err != nil {
		return out, fmt.Errorf("metrics of the configuration: %w", err)
	}
	out.Ready = func() error { return nil } // the previous configuration still applies
	out.Detail = func() string {
		if text := l.detail.Load(); text != nil {
			return *text
		}
		return ""
	}
	out.Run = l.follow
	return out, nil
}

// component is the webhook with its sources. Without a file it is empty unless the webhook is
// enabled. With a file the webhook may be enabled later.
func (b *liveBuiltin) component(env frontdoor.Environment) (frontdoor.Component, error) {
	l := b.config
	out := frontdoor.Component{Name: b.Name}
	if l.file == "" && !l.start.Has(b.Name) {
		return out, nil
	}
	b.from = NoSources()
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
	if state.webhooks, err = b.defined(c, b.from); err != nil {
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

// follow reads the file whenever it may have changed.
func (l *liveConfig) follow(ctx context.Context) error {
	last := l.start.data
	var pending func() bool // a configuration that waits for its objects
	follow.Files(ctx, l.logger, "the configuration", l.interval, func() {
		data, err := os.ReadFile(l.file)
		if err == nil && bytes.Equal(data, last) || err != nil && last == nil {
			if pending != nil && pending() {
				pending = nil
			}
			return
		}
		last, pending = data, nil
		if err == nil {
			var next *Config
			if next, pending, err = l.load(); next != nil {
				last = next.data
			}
		}
		if err != nil {
			l.fail(err)
		} else if pending() {
			pending = nil
		}
	}, l.file)
	return nil
}

// fail records that the configuration was rejected.
func (l *liveConfig) fail(err error) {
	l.reloads.WithLabelValues("failure").Inc()
	l.good.Set(0)
	l.say("invalid configuration; keeping the previous one; see the log")
	l.logger.Error("invalid configuration; keeping the previous one", "file", l.file, "error", err)
}

func (l *liveConfig) say(text string) { l.detail.Store(&text) }

// load reads the file with the flags of this start. Apply makes the configuration current; it
// returns false while something that it needs has not been read. Next is the configuration that
// was read, even after an error.
func (l *liveConfig) load() (next *Config, apply func() bool, err error) {
	next, err = Load(l.file, l.given)
	if err != nil {
		return next, nil, err
	}
	later := l.later(next)
	next.keepPlaces(l.start)
	for _, setting := range settingsAfterRestart() {
		if setting.keep != nil {
			setting.keep(next, l.start)
		}
	}
	states := make([]*builtinState, len(l.builtins))
	for i, b := range l.builtins {
		if states[i], err = b.next(next); err != nil {
			return next, nil, err
		}
	}
	told := false
	return next, func() bool {
		for i, b := range l.builtins {
			if err := b.ready(states[i]); states[i].enabled && err != nil {
				if !told {
					l.say("the configuration is pending: " + err.Error())
					l.logger.Info("the configuration is pending", "file", l.file, "webhook", b.Name, "reason", err)
				}
				told = true
				return false
			}
		}
		l.current.Store(next)
		for i, b := range l.builtins {
			b.state.Store(states[i])
		}
		l.reloads.WithLabelValues("success").Inc()
		l.good.Set(1)
		l.say(later)
		enabled := []string{}
		for _, b := range next.Enabled() {
			enabled = append(enabled, b.Name)
		}
		l.logger.Info("the configuration has changed", "file", l.file, "webhooks", strings.Join(enabled, ","), "note", later)
		l.changed()
		return true
	}, nil
}

// later names the changed sections that take effect at the next start.
func (l *liveConfig) later(next *Config) string {
	var sections []string
	was, is := reflect.ValueOf(l.start.SallyportConfiguration), reflect.ValueOf(next.SallyportConfiguration)
	for field := range was.Type().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "webhooks" && !reflect.DeepEqual(was.FieldByIndex(field.Index).Interface(), is.FieldByIndex(field.Index).Interface()) {
			sections = append(sections, name)
		}
	}
	for _, setting := range settingsAfterRestart() {
		if !setting.same(next, l.start) {
			sections = append(sections, setting.name)
		}
	}
	for _, name := range Names() {
		if !next.samePlaces(name, l.start) {
			sections = append(sections, "paths and names of "+name)
		}
	}
	if len(sections) == 0 {
		return ""
	}
	slices.Sort(sections)
	return "changes to " + strings.Join(sections, ", ") + " take effect after a restart"
}

func settingsAfterRestart() (all []restarted) {
	for _, b := range Builtins() {
		all = append(all, b.afterRestart...)
	}
	return all
}

// adjust is [Config.adjust] of the current configuration.
func (l *liveConfig) adjust(w *admission.Webhook) { l.now().adjust(w) }

// seconds converts a time for metrics.
func seconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMicro()) / 1e6
}
