// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/sallyport-io/sallyport/internal/registration"
)

// reachLimit is how long a server waits for its Service. A server that cannot reach it, for
// example because a network policy admits only the API server, waits no longer than this.
// Kubelet and the endpoint controller need less.
const reachLimit = 10 * time.Second

// reach checks whether the Service leads to a server with a certificate of the same authority.
// A server is ready before its kubelet probes it, and endpoints are published only after that.
// If webhooks were registered immediately, requests would fail meanwhile.
type reach struct {
	address string // host:port; empty to skip the wait
	reached chan struct{}
}

func newReach(o *Registration) *reach {
	r := &reach{reached: make(chan struct{})}
	if o == nil || !o.AwaitService || o.Config.Endpoint.Service == nil || o.Mode != registration.ModeAPI {
		close(r.reached)
		return r
	}
	service := o.Config.Endpoint.Service
	port := service.Port
	if port == 0 {
		port = 443
	}
	r.address = net.JoinHostPort(service.Name+"."+service.Namespace+".svc", strconv.Itoa(int(port)))
	return r
}

// err returns nil once the Service was reached or the wait timed out.
func (r *reach) err() error {
	select {
	case <-r.reached:
		return nil
	default:
		return errors.New("waiting for the Service to lead to a ready server: " + r.address)
	}
}

// wait dials until a server presents a certificate that the bundle verifies, the webhooks are
// registered (they are called anyway), the limit passes, or ctx ends.
func (r *reach) wait(ctx context.Context, bundle func() []byte, registered func() bool) {
	defer close(r.reached)
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for !registered() {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(bundle()) {
			roots = nil // the certificate is verified by the system roots or by a bundle that is not ours
		}
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		if conn, err := dialer.DialContext(ctx, "tcp", r.address); err == nil {
			_ = conn.Close() // no data was sent
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}
