// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// WithHealth answers probes, which name no user.
func WithHealth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			_, _ = w.Write([]byte("ok")) // the client may be gone
			return
		}
		next.ServeHTTP(w, r)
	})
}

// WithoutPrefix removes a prefix from paths. Links are relative, so the first page needs the final slash.
func WithoutPrefix(prefix string, next http.Handler) http.Handler {
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

// Listen listens on an address. An unspecified one stands for all of both families.
func Listen(ctx context.Context, address netip.AddrPort) (net.Listener, error) {
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

// Serve runs a server until ctx ends, and then returns nil.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
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
