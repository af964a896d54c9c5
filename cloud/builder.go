// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	cmfeatures "k8s.io/controller-manager/pkg/features"

	"github.com/sallyport-io/sallyport/serving"
)

// registerOf adds the webhooks that are registered with an upstream builder. Upstream's
// handlers answer them: see [upstream].
func (r *Registry) registerOf(builder *app.CommandBuilder) error {
	paths, err := builderPaths(builder)
	if err != nil {
		return fmt.Errorf("cloud: %w", err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		w := &Webhook{Name: name, DisabledByDefault: app.WebhooksDisabledByDefault.Has(name), upstream: true}
		w.Definition.Name, w.Definition.Path = name, paths[name]
		if !strings.HasPrefix(paths[name], "/") {
			errs = append(errs, fmt.Errorf("webhook %q: path %q must begin with a slash", name, paths[name]))
		}
		for _, other := range r.webhooks {
			errs = append(errs, w.collides(other)...)
		}
		r.webhooks = append(r.webhooks, w)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cloud: %w", err)
	}
	return nil
}

// builderPaths returns the paths of the webhooks of a builder, by name. The builder does not
// export them.
func builderPaths(builder *app.CommandBuilder) (map[string]string, error) {
	configs := reflect.ValueOf(builder).Elem().FieldByName("webhookConfigs")
	if !configs.IsValid() || configs.Type() != reflect.TypeFor[map[string]app.WebhookConfig]() {
		return nil, errors.New("this version of k8s.io/cloud-provider does not tell which webhooks its builder has: register them with Registry.RegisterWebhook")
	}
	paths := map[string]string{}
	for i := configs.MapRange(); i.Next(); {
		paths[i.Key().String()] = i.Value().FieldByName("Path").String()
	}
	return paths, nil
}

// upstream is the server that upstream's command starts for the webhooks of its builder,
// on a listener in memory. It has no other way to call them. The host accepts the calls, with
// its limits and its authentication, and forwards them.
type upstream struct {
	listener *pipes
	client   *http.Client
	names    []string
}

// newUpstream returns nil if no webhook is of upstream.
func newUpstream(webhooks []*Webhook) *upstream {
	u := &upstream{listener: &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}}
	for _, w := range webhooks {
		if w.upstream {
			u.names = append(u.names, w.Name)
		}
	}
	if len(u.names) == 0 {
		return nil
	}
	return u
}

// upstreamHost is the name in the certificate of upstream's server.
const upstreamHost = "webhooks.invalid"

// configure makes upstream serve its webhooks. It is called before upstream decides.
func (u *upstream) configure(completed *config.CompletedConfig) error {
	certPEM, keyPEM, err := certutil.GenerateSelfSignedCertKey(upstreamHost, nil, nil)
	if err != nil {
		return err
	}
	cert, err := dynamiccertificates.NewStaticCertKeyContent("in memory", certPEM, keyPEM)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	u.client = &http.Client{Transport: &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return u.listener.dial(ctx) },
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13},
	}}
	if err := utilfeature.DefaultMutableFeatureGate.Set(string(cmfeatures.CloudControllerManagerWebhook) + "=true"); err != nil {
		return err // the name of the gate in the KEP opens it, too
	}
	completed.ComponentConfig.Webhook.Webhooks = u.names
	completed.WebhookSecureServing = &server.SecureServingInfo{Listener: u.listener, Cert: cert, DisableHTTP2: true}
	return nil
}

// answer forwards a call. Until upstream serves, it waits.
func (u *upstream) answer(ctx context.Context, w http.ResponseWriter, call serving.Call) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+upstreamHost+call.Request.URL.Path, bytes.NewReader(call.Body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	req.Header.Set("Content-Type", "application/json") // with a parameter, upstream would refuse it
	resp, err := u.client.Do(req)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		http.Error(w, "the handler of "+call.Request.URL.Path+" did not answer", http.StatusServiceUnavailable)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// pipes is a listener in memory.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accept <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accept:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "memory" }
