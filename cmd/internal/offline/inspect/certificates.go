// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"time"
)

// DialTimeout is how long a server may take to show its certificate.
const DialTimeout = 3 * time.Second

// Certificates asks servers for their certificates, a few at a time. It leaves out servers that
// do not answer: a Service answers only within the cluster.
func Certificates(ctx context.Context, endpoints []string) map[string][]*x509.Certificate {
	const parallel, timeout = 16, 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := map[string][]*x509.Certificate{}
	var mu sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, endpoint := range endpoints {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if chain, err := Certificate(ctx, endpoint, nil); err == nil {
				mu.Lock()
				out[endpoint] = chain
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return out
}

// Certificate returns the chain that a server presents for its host name. It does not verify
// the chain; the caller compares it with a bundle. A conn that is not nil replaces a new
// connection. Certificate closes it.
func Certificate(ctx context.Context, endpoint string, conn net.Conn) ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return nil, err
	}
	if conn == nil {
		var dialer net.Dialer
		if conn, err = dialer.DialContext(ctx, "tcp", endpoint); err != nil {
			return nil, err
		}
	}
	defer func() { _ = conn.Close() }()                                                 // nothing was written
	client := tls.Client(conn, &tls.Config{ServerName: host, InsecureSkipVerify: true}) // see above
	if err := client.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return client.ConnectionState().PeerCertificates, nil
}
