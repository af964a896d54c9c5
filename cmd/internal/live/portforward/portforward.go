// SPDX-License-Identifier: Apache-2.0

// Package portforward connects to ports of pods through the API server and the kubelet, like kubectl
// port-forward, but opens no local port.
package portforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// A Forwarder connects with the rights of its client.
type Forwarder struct {
	Config *rest.Config
	Client kubernetes.Interface
}

// Timeout limits the wait for an answer from a pod's port.
const Timeout = 15 * time.Second

// DialService connects to a Service's port through one of its ready pods.
func (f *Forwarder) DialService(ctx context.Context, namespace, name string, port int32) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	targets, err := f.podsBehind(ctx, namespace, name, port)
	if err != nil {
		return nil, err
	}
	// Check the permission first: a refused upgrade does not always give the reason.
	review, err := f.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Resource: "pods", Subresource: "portforward",
		}},
	}, metav1.CreateOptions{})
	if err == nil && !review.Status.Allowed {
		return nil, fmt.Errorf("no permission to create pods/portforward in %s", namespace)
	}
	const limit = 3 // pods to try
	var errs []error
	for _, target := range targets[:min(limit, len(targets))] {
		conn, err := f.DialPod(ctx, namespace, target.pod, target.port)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("forwarding port %d of pod %s/%s: %w", target.port, namespace, target.pod, err))
	}
	return nil, errors.Join(errs...)
}

// podPort is a port on a pod.
type podPort struct {
	pod  string
	port int32
}

// podsBehind returns the ready pods behind a Service's port, at least one.
func (f *Forwarder) podsBehind(ctx context.Context, namespace, name string, port int32) ([]podPort, error) {
	service, err := f.Client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	portName, ok := "", false
	for _, p := range service.Spec.Ports {
		if p.Port == port {
			portName, ok = p.Name, true
		}
	}
	if !ok {
		return nil, fmt.Errorf("the Service %s/%s has no port %d", namespace, name, port)
	}
	slices, err := f.Client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	if err != nil {
		return nil, err
	}
	var out []podPort
	for _, slice := range slices.Items {
		for _, p := range slice.Ports {
			if p.Port == nil || p.Name != nil && *p.Name != portName || p.Name == nil && portName != "" {
				continue
			}
			for _, e := range slice.Endpoints {
				ready := e.Conditions.Ready == nil || *e.Conditions.Ready
				if ready && e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
					out = append(out, podPort{e.TargetRef.Name, *p.Port})
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no ready endpoint of Service %s/%s is a pod", namespace, name)
	}
	return out, nil
}

// DialPod connects to a port of a pod. It tries SPDY over WebSocket, which passes more proxies,
// and falls back to SPDY if the API server or a proxy does not support that.
func (f *Forwarder) DialPod(ctx context.Context, namespace, pod string, port int32) (net.Conn, error) {
	url := f.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(f.Config)
	if err != nil {
		return nil, err
	}
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, f.Config)
	if err != nil {
		return nil, err
	}
	dialer := portforward.NewFallbackDialerForStreaming(tunnel,
		spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })

	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() { // dialers take no context
		conn, err := openStreams(dialer, port)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.conn.Close() // the caller is gone
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// openStreams opens the two streams of a forwarded connection.
func openStreams(dialer httpstream.Dialer, port int32) (net.Conn, error) {
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	problems, err := connection.CreateStream(headers)
	if err != nil {
		_ = connection.Close()
		return nil, err
	}
	_ = problems.Close() // we send nothing on it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		_ = connection.Close()
		return nil, err
	}
	c := &forwardedConn{Stream: data, connection: connection, said: make(chan string, 1)}
	go func() {
		const limit = 4 << 10
		text, _ := io.ReadAll(io.LimitReader(problems, limit))
		c.said <- strings.TrimSpace(string(text))
	}()
	return c, nil
}

// forwardedConn makes a stream look like a connection. Deadlines have no effect; close it to
// enforce a time limit.
type forwardedConn struct {
	httpstream.Stream
	connection httpstream.Connection
	said       chan string // the kubelet's error message, when that stream ends
}

// Read implements [net.Conn]. At the end of the stream it returns the kubelet's error for the
// port, for example that nothing listens on it.
func (c *forwardedConn) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	if errors.Is(err, io.EOF) && n == 0 {
		select {
		case text := <-c.said:
			c.said <- text
			if text != "" {
				return 0, errors.New(text)
			}
		case <-time.After(time.Second): // the message arrives before the end or never
		}
	}
	return n, err
}

// Close implements [net.Conn].
func (c *forwardedConn) Close() error { return c.connection.Close() }

// LocalAddr implements [net.Conn].
func (*forwardedConn) LocalAddr() net.Addr { return &net.UnixAddr{Name: "portforward"} }

// RemoteAddr implements [net.Conn].
func (*forwardedConn) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "portforward"} }

// SetDeadline implements [net.Conn].
func (*forwardedConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements [net.Conn].
func (*forwardedConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements [net.Conn].
func (*forwardedConn) SetWriteDeadline(time.Time) error { return nil }
