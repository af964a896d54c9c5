// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-io/sallyport/serving/certificate"
)

// RunLocal serves a local user on a loopback address until ctx ends, and then returns nil. Ready is called
// with the URL of the first page.
func (o *Options) RunLocal(ctx context.Context, address netip.AddrPort, ready func(url string)) error {
	if !address.Addr().IsLoopback() {
		return fmt.Errorf("%s is not a loopback address, and a local console has no authentication", address)
	}
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	o.ending = ctx.Done()
	ready("http://" + listener.Addr().String() + "/")
	return serve(ctx, listener, o.handler(local))
}

// RunBehind serves the users of a proxy on an address until ctx ends, and then returns nil. It accepts
// requests with and without the prefix in their path, because some proxies remove it. Certificate is nil
// for plain HTTP.
func (o *Options) RunBehind(ctx context.Context, proxy *Proxy, address netip.AddrPort, prefix string, certificate *certificate.Files, ready func(url string)) error {
	if err := proxy.Validate(); err != nil {
		return err
	}
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	scheme := "http"
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if certificate != nil {
		scheme = "https"
		go func() { _ = certificate.Run(ctx) }() // it returns nil
		config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.GetCertificate, NextProtos: []string{"h2", "http/1.1"}}
		if proxy.ClientCA != nil {
			config.ClientAuth = tls.RequestClientCert // identify verifies it; probes have none
		}
		listener = tls.NewListener(listener, config)
	}
	if proxy.ClientCA != nil {
		go func() { _ = proxy.ClientCA.Run(ctx) }() // it returns nil
	}
	o.ending = ctx.Done()
	ready(scheme + "://" + listener.Addr().String() + prefix + "/")
	return serve(ctx, listener, withHealth(withoutPrefix(prefix, o.handler(proxy.identify))))
}

// withHealth answers probes, which name no user.
func withHealth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			_, _ = w.Write([]byte("ok")) // the client may be gone
			return
		}
		next.ServeHTTP(w, r)
	})
}

// withoutPrefix removes a prefix from paths. Links are relative, so the first page needs the final slash.
func withoutPrefix(prefix string, next http.Handler) http.Handler {
	if prefix == "" {
		return next
	}
	stripped := http.StripPrefix(prefix, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == prefix:
			http.Redirect(w, r, (&url.URL{Path: prefix + "/", RawQuery: r.URL.RawQuery}).String(), http.StatusPermanentRedirect)
		case strings.HasPrefix(r.URL.Path, prefix+"/"):
			stripped.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func listen(ctx context.Context, address netip.AddrPort) (net.Listener, error) {
	text := address.String()
	if address.Addr().IsUnspecified() { // both families, or the one that there is
		text = net.JoinHostPort("", strconv.Itoa(int(address.Port())))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", text)
	if err != nil {
		return nil, fmt.Errorf("listen: %w; choose another --port", err)
	}
	return listener, nil
}

// grace is how long requests may take when the console ends.
const grace = 5 * time.Second

// serve runs a server until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
