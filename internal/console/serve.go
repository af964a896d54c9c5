// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// RunLocal serves a local user on a loopback address until ctx ends, and then returns nil. Port 0 is any
// free port. Ready is called with the URL of the first page.
func (o *Options) RunLocal(ctx context.Context, port int, ready func(url string)) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen: %w; choose another --port", err)
	}
	ready("http://" + listener.Addr().String() + "/")
	return serve(ctx, &http.Server{Handler: o.handler(local)}, func(s *http.Server) error { return s.Serve(listener) })
}

// grace is how long requests may take when the console ends.
const grace = 5 * time.Second

// serve runs a server until ctx ends.
func serve(ctx context.Context, server *http.Server, listen func(*http.Server) error) error {
	server.ReadHeaderTimeout, server.ReadTimeout, server.WriteTimeout, server.IdleTimeout = 10*time.Second, 30*time.Second, time.Minute, time.Minute
	server.MaxHeaderBytes = 64 << 10
	ended := make(chan error, 1)
	go func() { ended <- listen(server) }()
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
