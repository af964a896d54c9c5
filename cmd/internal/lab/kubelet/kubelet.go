// SPDX-License-Identifier: Apache-2.0

// Package kubelet is as much of a kubelet as tests need that have an API server and
// no nodes.
package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Kubelet is of a node's kubelet what kube-apiserver needs to forward ports of pods:
// POST /portForward/NAMESPACE/POD, with the streams that a kubelet has. Processes of the
// test stand for the pods.
type Kubelet struct {
	// Node is the name of the node in the API, for spec.nodeName of pods.
	Node string

	dial      Dial
	mu        sync.Mutex
	forwarded map[string]int
}

// Dial connects to a port of a pod, NAMESPACE/NAME.
type Dial func(ctx context.Context, pod, port string) (net.Conn, error)

// At is where every pod is.
func At(address string) Dial {
	return func(ctx context.Context, _, port string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(address, port))
	}
}

// Start makes a node, and a kubelet for it on this machine, until the test ends.
func Start(t testing.TB, client kubernetes.Interface, dial Dial) *Kubelet {
	t.Helper()
	k := &Kubelet{Node: "node", dial: dial, forwarded: map[string]int{}}
	server := httptest.NewTLSServer(http.HandlerFunc(k.serve))
	t.Cleanup(func() {
		server.CloseClientConnections() // also those that were upgraded
		server.Close()
	})
	listener := server.Listener.Addr().(*net.TCPAddr)
	nodes := client.CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.Node}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: listener.IP.String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(listener.Port)
	if _, err := nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return k
}

// Remove takes the node away.
func (k *Kubelet) Remove(t testing.TB, client kubernetes.Interface) {
	t.Helper()
	if err := client.CoreV1().Nodes().Delete(t.Context(), k.Node, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Forwarded tells how many connections to a pod, NAMESPACE/NAME, were forwarded.
func (k *Kubelet) Forwarded(pod string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.forwarded[pod]
}

func (k *Kubelet) serve(w http.ResponseWriter, r *http.Request) {
	pod, ok := strings.CutPrefix(r.URL.Path, "/portForward/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return // it has answered
	}
	streams := make(chan httpstream.Stream, 2)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if connection == nil {
		return
	}
	defer func() { _ = connection.Close() }() // the test is over, or the client went away
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var problems httpstream.Stream
	for {
		select {
		case stream := <-streams:
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				problems = stream
				continue
			}
			k.mu.Lock()
			k.forwarded[pod]++
			k.mu.Unlock()
			go k.forward(ctx, pod, stream, problems)
		case <-connection.CloseChan():
			return
		}
	}
}

// forward copies both ways until both have ended.
func (k *Kubelet) forward(ctx context.Context, pod string, data, problems httpstream.Stream) {
	port := data.Headers().Get(corev1.PortHeader)
	conn, err := k.dial(ctx, pod, port)
	if err != nil {
		_, _ = fmt.Fprintf(problems, "forwarding port %s: %v", port, err) // as a kubelet says it
	} else {
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer stop()
		go func() {
			_, _ = io.Copy(conn, data) // how it ends, the other direction tells
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(data, conn)
		_ = conn.Close()
	}
	_ = problems.Close()
	_ = data.Close()
}
