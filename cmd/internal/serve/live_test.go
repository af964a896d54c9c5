// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/imagepull"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/projectlimit"
)

// running is a liveConfig that follows a file, without a server.
type running struct {
	*liveConfig
	t          *testing.T
	path       string
	components map[string]frontdoor.Component
	changes    chan struct{}
}

func startLive(t *testing.T, text string, args ...string) *running {
	t.Helper()
	path := file(t, configHead+text)
	flags := given(t, append([]string{"--url", "https://127.0.0.1:9443"}, args...)...)
	config, err := Load(path, flags)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{liveConfig: newLiveConfig(path, flags, config), t: t, path: path, components: map[string]frontdoor.Component{}, changes: make(chan struct{}, 100)}
	r.interval = time.Millisecond
	env := frontdoor.Environment{
		Client: &rest.Config{Host: "https://127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Changed: func() { r.changes <- struct{}{} },
	}
	builds := map[string]func(frontdoor.Environment) (frontdoor.Component, error){"config": r.component}
	for _, b := range r.builtins {
		builds[b.Name] = b.component
	}
	for _, name := range append([]string{"config"}, Names()...) {
		component, err := builds[name](env)
		if err != nil {
			t.Fatal(err)
		}
		r.components[name] = component
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.components["config"].Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// write replaces the whole file, like an update of a ConfigMap.
func (r *running) write(text string) {
	r.t.Helper()
	next := filepath.Join(filepath.Dir(r.path), "next")
	if err := os.WriteFile(next, []byte(configHead+text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(next, r.path); err != nil {
		r.t.Fatal(err)
	}
}

// failed waits for that number of rejected configurations.
func (r *running) failed(times float64) {
	r.t.Helper()
	deadline := time.After(30 * time.Second)
	for testutil.ToFloat64(r.reloads.WithLabelValues("failure")) < times {
		select {
		case <-deadline:
			r.t.Fatal("the bad configuration was not noticed")
		case <-time.After(time.Millisecond):
		}
	}
}

func (r *running) registered(name string) []string {
	var names []string
	for _, w := range r.components[name].Registered() {
		r.adjust(&w)
		names = append(names, w.Name+" "+string(w.FailurePolicy))
	}
	return names
}

// ask sends a pod to one of imagepull's webhooks, by path.
func (r *running) ask(path, image string) (allowed, patched bool, err error) {
	for _, w := range r.components["imagepull"].Webhooks {
		if w.Path != path {
			continue
		}
		resp, err := w.Handler.Handle(context.Background(), &admissionv1.AdmissionRequest{
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Operation: admissionv1.Create,
			Object: runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"a","image":"` + image + `","imagePullPolicy":"Always"}]}}`)},
		})
		if err != nil {
			return false, false, err
		}
		return resp.Allowed, len(resp.Patch) > 0, nil
	}
	return false, false, errors.New("no such path")
}

func TestAConfigurationIsFollowedAndABadOneIsNot(t *testing.T) {
	r := startLive(t, "webhooks: [{name: imagepull, failurePolicy: Ignore}]\n")
	want := func(names ...string) {
		t.Helper()
		if got := r.registered("imagepull"); !slices.Equal(got, names) {
			t.Errorf("registered are %v", got)
		}
	}
	want("imagepull.sallyport.io Ignore", "validate.imagepull.sallyport.io Ignore")
	if allowed, _, err := r.ask(imagepull.ValidatingPath, "app"); err != nil || !allowed {
		t.Fatalf("at the start: %v, %v", allowed, err)
	}

	r.write("webhooks: [{name: imagepull, settings: {alwaysPull: false, forbidLatest: true}}]\n")
	<-r.changes
	want("validate.imagepull.sallyport.io ")
	if allowed, _, err := r.ask(imagepull.ValidatingPath, "app"); err != nil || allowed {
		t.Errorf("with forbidLatest: %v, %v", allowed, err)
	}
	if _, _, err := r.ask(imagepull.MutatingPath, "app"); err != nil {
		t.Errorf("one that is not registered any more is at fault: %v", err)
	}

	detail := r.components["config"].Detail
	if detail() != "" {
		t.Errorf("the detail of a good one is %q", detail())
	}
	r.write("webhooks: [{name: imagepull, settings: {forbidLatest: 1}}]\n")
	r.failed(1)
	if !strings.Contains(detail(), "invalid configuration") || testutil.ToFloat64(r.good) != 0 || r.components["config"].Ready() != nil {
		t.Errorf("the detail of a bad one is %q, the metric %v", detail(), testutil.ToFloat64(r.good))
	}
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	r.failed(2)
	if allowed, _, err := r.ask(imagepull.ValidatingPath, "app"); err != nil || allowed {
		t.Errorf("the last good one does not count any more: %v, %v", allowed, err)
	}

	r.write("webhooks: [{name: servicetype}]\nserving: {drainMin: 30s}\nlog: {level: debug}\n")
	<-r.changes
	want()
	if got := r.registered("servicetype"); !slices.Equal(got, []string{"servicetype.sallyport.io "}) {
		t.Errorf("registered are %v", got)
	}
	if got := detail(); got != "changes to log, serving take effect after a restart" || testutil.ToFloat64(r.good) != 1 {
		t.Errorf("the detail is %q", got)
	}
	if allowed, _, err := r.ask(imagepull.ValidatingPath, "app"); err != nil || allowed {
		t.Errorf("one that the API server may still call: %v, %v", allowed, err)
	}
}

func TestFlagsCountBeforeAConfigurationThatChanges(t *testing.T) {
	r := startLive(t, "webhooks: [{name: imagepull}]\n", "--webhooks", "imagepull,servicetype", "--failure-policy", "Ignore")
	r.write("webhooks: [{name: imagepull, failurePolicy: Fail, settings: {forbidLatest: true}}, {name: servicetype, enabled: false}]\n")
	<-r.changes
	if got := r.registered("servicetype"); len(got) != 1 {
		t.Errorf("registered are %v", got)
	}
	if got := r.registered("imagepull"); !slices.Equal(got, []string{"imagepull.sallyport.io ", "validate.imagepull.sallyport.io "}) {
		t.Errorf("registered are %v", got)
	}
	if allowed, _, err := r.ask(imagepull.ValidatingPath, "app"); err != nil || allowed {
		t.Errorf("the settings: %v, %v", allowed, err)
	}
}

// A webhook takes effect only after its sources have been read. Here they never are, as the API
// server does not answer.
func TestAWebhookThatReadsFromTheClusterWaits(t *testing.T) {
	r := startLive(t, "webhooks: [{name: imagepull}]\n")
	projects := r.components["projectlimit"]
	if err := projects.Ready(); err != nil {
		t.Errorf("it is not ready although nobody wants it: %v", err)
	}
	r.write("webhooks: [{name: projectlimit}]\n")
	deadline := time.After(30 * time.Second)
	for !strings.Contains(r.components["config"].Detail(), "the configuration is pending: namespaces are not read yet") {
		select {
		case <-deadline:
			t.Fatalf("the detail is %q", r.components["config"].Detail())
		case <-time.After(time.Millisecond):
		}
	}
	if projects.Ready() != nil || len(r.registered("projectlimit")) != 0 || len(r.registered("imagepull")) != 2 {
		t.Error("it counts before it is ready")
	}
	for _, w := range projects.Webhooks {
		if w.Name != projectlimit.CountName {
			continue
		}
		if _, err := w.Handler.Handle(t.Context(), &admissionv1.AdmissionRequest{}); err == nil {
			t.Error("one that was never enabled decides")
		}
	}
	r.write("webhooks: [{name: imagepull, settings: {forbidLatest: true}}]\n")
	<-r.changes
	if allowed, _, err := r.ask(imagepull.ValidatingPath, "app"); err != nil || allowed {
		t.Errorf("the next one does not count: %v, %v", allowed, err)
	}
}

func TestNoCallFailsWhileTheConfigurationChanges(t *testing.T) {
	r := startLive(t, "webhooks: [{name: imagepull}]\n")
	var stop atomic.Bool
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for !stop.Load() {
				for _, path := range []string{imagepull.MutatingPath, imagepull.ValidatingPath} {
					if allowed, _, err := r.ask(path, "app:1"); err != nil || !allowed {
						t.Errorf("%s: %v, %v", path, allowed, err)
						stop.Store(true)
					}
				}
			}
		})
	}
	for i := range 20 {
		settings := "{}"
		if i%2 == 0 {
			settings = "{alwaysPull: false, forbidLatest: true}"
		}
		r.write("webhooks: [{name: imagepull, settings: " + settings + "}]\n")
		<-r.changes
	}
	stop.Store(true)
	callers.Wait()
}

// TestAConfigurationWaitsForItsProfile: a configuration that names a ConfigMap takes effect
// only after the ConfigMap has been read. Here it never is, as there is no API server.
func TestAConfigurationWaitsForItsProfile(t *testing.T) {
	r := startLive(t, "webhooks: [{name: imagepull}]\n")
	config := Default()
	if err := config.Select("dataset"); err != nil {
		t.Fatal(err)
	}
	settings := Dataset(config)
	settings.PluginsProfileConfigMap = "fluid-system/webhook-plugins"
	for _, b := range r.builtins {
		if b.Name != "dataset" {
			continue
		}
		state, err := b.next(config)
		if err != nil {
			t.Fatal(err)
		}
		w := *b.watch
		w.ready = func() error { return nil } // every other source
		b.watch = &w
		if err := b.ready(state); err == nil || !strings.Contains(err.Error(), "ConfigMap fluid-system/webhook-plugins with the profile of plugins: it is not read yet") {
			t.Errorf("it is ready: %v", err)
		}
		settings.Disabled = true
		if err := b.ready(state); err != nil {
			t.Errorf("a webhook that is disabled waits: %v", err)
		}
	}
}

func TestChangesThatCountFromTheNextStartOn(t *testing.T) {
	next := Default()
	PodDefault(next).DataConnections = "connection"
	l := newLiveConfig("", nil, Default())
	if got := l.later(Default()); got != "" {
		t.Errorf("without a change: %q", got)
	}
	if got := l.later(next); got != "changes to dataConnections of poddefault take effect after a restart" {
		t.Errorf("got %q", got)
	}
	next = Default()
	PodDefault(next).MaxExemption.Duration = time.Hour
	if got := l.later(next); got != "changes to maxExemption of poddefault take effect after a restart" {
		t.Errorf("got %q", got)
	}
}
