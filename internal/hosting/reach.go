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

	"github.com/sallyport-io/sallyport/registration"
)

// reachLimit is how long a server waits for its Service. Whoever it does not answer, as
// with a network policy that lets only the API server in, waits this long and no longer;
// a kubelet and the controller of endpoints need less.
const reachLimit = 10 * time.Second

// reach knows whether the Service leads to a server that has a certificate of the same
// authority. A server is ready before its kubelet has asked it, and endpoints are published
// after that: whoever registers webhooks at once has objects refused meanwhile.
type reach struct {
	address string // host:port; empty if it is not waited for
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

// err is nil once the Service was reached, or waited for long enough.
func (r *reach) err() error {
	select {
	case <-r.reached:
		return nil
	default:
		return errors.New("waiting for the Service to lead to a ready server: " + r.address)
	}
}

// wait dials until somebody shows a certificate that the bundle verifies, the webhooks are
// registered, for then they are called anyway, the limit is over or ctx ends.
func (r *reach) wait(ctx context.Context, bundle func() []byte, registered func() bool) {
	defer close(r.reached)
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for !registered() {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(bundle()) {
			roots = nil // whoever gave the certificate is trusted by the system, or by somebody else's bundle
		}
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		if conn, err := dialer.DialContext(ctx, "tcp", r.address); err == nil {
			_ = conn.Close() // nothing was asked
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}
