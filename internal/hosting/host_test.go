// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// journal records events in order.
type journal struct {
	mu     sync.Mutex
	events []string
}

func (j *journal) add(event string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// options returns the options of a host with a certificate in memory, on a free port.
func options() Options {
	o := Options{Logger: slog.New(slog.DiscardHandler), Serving: serving.DefaultOptions()}
	o.Serving.BindAddress, o.Serving.SecurePort, o.Serving.MetricsBindAddress = "127.0.0.1", 0, "0"
	o.Serving.DrainMin, o.Serving.DrainTimeout = 0, 0
	o.Certificate = func(a certificate.AuthorityOptions) (certificate.Source, error) {
		a.DNSNames = []string{"localhost"}
		return certificate.NewAuthority(a)
	}
	return o
}

// start runs a host until the returned func is called.
func start(t *testing.T, o Options) (h *Host, end func() error) {
	t.Helper()
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	end = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = end() })
	return h, end
}

func TestWhatHandlersStandOnEndsAfterTheLastCall(t *testing.T) {
	var happened journal
	calling, finish := make(chan struct{}), make(chan struct{})
	until := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { <-ctx.Done(); happened.add(name + " ends"); return nil }
	}
	o := options()
	o.Parts = []Part{{Name: "cache", Run: until("cache")}}
	o.Callers = &Authentication{Authenticate: func(*http.Request) error { return nil }, Run: until("callers")}
	o.Readers = o.Callers // runs once
	o.Serving.Routes = []serving.Route{{Path: "/a", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(calling)
		<-finish
		happened.add("call ends")
	})}}
	h, end := start(t, o)
	<-h.Server().Opened()

	answered := make(chan error, 1)
	go func() {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
		response, err := client.Post("https://"+h.Server().Addr().String()+"/a", "application/json", strings.NewReader("{}"))
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	<-calling
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	time.Sleep(50 * time.Millisecond) // time for a part that stops too early
	close(finish)
	if err := errors.Join(<-answered, <-ended); err != nil {
		t.Fatal(err)
	}
	got := happened.all()
	if len(got) != 3 || got[0] != "call ends" || !slices.Contains(got, "cache ends") || !slices.Contains(got, "callers ends") {
		t.Errorf("got %v", got)
	}
}

func TestAFailureEndsAllOfIt(t *testing.T) {
	broken := errors.New("the cache is broken")
	ended := make(chan struct{})
	o := options()
	o.Parts = []Part{
		{Name: "cache", Run: func(context.Context) error { return broken }},
		{Name: "other", Run: func(ctx context.Context) error { <-ctx.Done(); close(ended); return nil }},
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	<-ended
}

func TestReadinessIsSignalled(t *testing.T) {
	var log bytes.Buffer
	var ready atomic.Bool
	var asked atomic.Int32
	told := make(chan struct{}, 1)
	o := options()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.Changed = NewSignal()
	o.Parts = []Part{{
		Name: "cache", Status: func() slog.Attr { return slog.Int("objects", 7) },
		Ready: func() error {
			asked.Add(1)
			if !ready.Load() {
				return errors.New("the cache is not read yet")
			}
			return nil
		},
	}}
	o.Registration = &Registration{Mode: registration.ModeNone}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.registrar.notify = func() {
		select {
		case told <- struct{}{}:
		default:
		}
	}
	if _, err := h.caBundle(); err == nil || !strings.Contains(err.Error(), "not read yet") {
		t.Errorf("the API server is told of a server that is not ready: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	select {
	case <-h.Server().Opened():
		t.Fatal("it is open before it is ready")
	case <-time.After(200 * time.Millisecond):
	}
	if n := asked.Load(); n > 10 {
		t.Errorf("the part was asked %d times in 200 ms: it is polled", n)
	}
	before := time.Now()
	ready.Store(true)
	o.Changed.Send()
	<-h.Server().Opened()
	<-told
	if bundle, err := h.caBundle(); err != nil || len(bundle) == 0 || h.Ready() != nil {
		t.Errorf("it is ready, and tells %q, %v, %v", bundle, err, h.Ready())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "msg=ready objects=7") {
		t.Errorf("nothing of it in the log: %s", log.String())
	}
	t.Logf("open %s after the signal", time.Since(before))
}

// lateSource has a certificate once the test says so.
type lateSource struct {
	certificate.Source
	ready   atomic.Bool
	changed chan struct{}
}

func (l *lateSource) Ready() error {
	if !l.ready.Load() {
		return errors.New("there is no certificate yet")
	}
	return l.Source.Ready()
}

func (l *lateSource) Changed() <-chan struct{} { return l.changed }

func TestWhatNeedsConvertersWaitsForTheCertificate(t *testing.T) {
	var late *lateSource
	ran := make(chan bool, 1)
	o := options()
	authority := o.Certificate
	o.Certificate = func(a certificate.AuthorityOptions) (certificate.Source, error) {
		source, err := authority(a)
		late = &lateSource{Source: source, changed: make(chan struct{})}
		return late, err
	}
	o.Parts = []Part{{Name: "controllers", Certified: true, Run: func(context.Context) error { ran <- late.ready.Load(); return nil }}}
	_, end := start(t, o)
	select {
	case <-ran:
		t.Fatal("it runs before there is a certificate")
	case <-time.After(50 * time.Millisecond):
	}
	late.ready.Store(true)
	close(late.changed)
	if !<-ran {
		t.Error("it runs without a certificate")
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestAuthenticationGuardsTheListener(t *testing.T) {
	asked := &Authentication{Authenticate: func(*http.Request) error { return serving.ErrForbidden }, Ready: func() error { return errors.New("no") }}
	o := serving.DefaultOptions()
	(&Host{callers: asked}).guard(&o)
	if !o.ClientCertificates || o.Authenticate(nil) == nil || len(o.Checks) != 1 || o.Checks[0].Ready() == nil {
		t.Errorf("options %+v", o)
	}
	o = serving.DefaultOptions()
	(&Host{readers: asked}).guard(&o)
	if !o.ClientCertificates || o.Authenticate != nil || o.AuthenticateMetrics(nil) == nil || len(o.Checks) != 0 {
		t.Errorf("who reads metrics is asked: options %+v", o)
	}
}
