// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/recording"
	"github.com/sallyport-io/sallyport/internal/certificate/follow"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
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
