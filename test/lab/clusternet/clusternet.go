// SPDX-License-Identifier: Apache-2.0

// Package clusternet plays the network of a cluster for a kube-apiserver that runs alone:
// addresses of pods lead to processes of this machine. kube-apiserver dials what is in the
// cluster through a proxy (its egress selector), and that is here; the addresses need not
// exist, and no rights are needed.
package clusternet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Network knows where addresses lead.
type Network struct {
	config string

	mu     sync.Mutex
	routes map[string]string
	last   int
}

// Start serves the proxy until the test ends.
func Start(t testing.TB) *Network {
	t.Helper()
	dir, err := os.MkdirTemp("", "net") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "proxy")
	n := &Network{config: filepath.Join(dir, "egress.yaml"), routes: map[string]string{}}
	text := "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n" +
		"- name: cluster\n  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: " + socket + "}}}\n"
	if err := os.WriteFile(n.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(n.serve), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
	return n
}

// Flags are those of kube-apiserver: endpoints of Services are dialled, not the address
// of a Service, at which nobody answers.
func (n *Network) Flags() map[string]string {
	return map[string]string{"egress-selector-config-file": n.config, "enable-aggregator-routing": "true"}
}

// NewAddress is one for a pod.
func (n *Network) NewAddress() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return fmt.Sprintf("10.244.%d.%d", n.last/250, n.last%250+1)
}

// Route lets an address, IP:PORT, lead to another one of this machine; to nowhere if that
// is empty.
func (n *Network) Route(address, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if to == "" {
		delete(n.routes, address)
		return
	}
	n.routes[address] = to
}

// Dial connects to an address of the cluster. Loopback addresses lead to themselves.
func (n *Network) Dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	to, ok := n.routes[address]
	n.mu.Unlock()
	if host, _, err := net.SplitHostPort(address); !ok && err == nil && net.ParseIP(host).IsLoopback() {
		to, ok = address, true
	}
	if !ok {
		return nil, fmt.Errorf("nothing listens at %s", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to)
}

func (n *Network) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	conn, err := n.Dial(r.Context(), r.RequestURI)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = conn.Close()
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		var both sync.WaitGroup
		both.Go(func() {
			_, _ = io.Copy(conn, buffered) // how it ends, the other direction tells
			_ = conn.(*net.TCPConn).CloseWrite()
		})
		both.Go(func() {
			_, _ = io.Copy(client, conn)
			_ = client.(*net.UnixConn).CloseWrite()
		})
		both.Wait()
	}
	_ = client.Close()
	_ = conn.Close()
}
