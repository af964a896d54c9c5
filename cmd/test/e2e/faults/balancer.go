// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// A balancer spreads connections over replicas in the place of the API server, below
// TLS. Connections that are open stay where they are, also when their replica is taken
// out, as with kube-proxy.
type balancer interface {
	add(r *replica) error
	remove(r *replica) error
	close()
}

// haproxy is a balancer at the cluster IP of the Service.
type haproxy struct {
	process *lab.Process
	socket  string
	slots   []string // names of replicas, by place in the configuration; empty: free
	next    int
}

// haproxySlots are more than there are endpoints at one time.
const haproxySlots = 16

func (c *cluster) startHAProxy(ctx context.Context) (*haproxy, error) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		binary, err = exec.LookPath("/usr/sbin/haproxy")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: install the haproxy of the distribution, for example apt-get install haproxy", err)
	}
	h := &haproxy{socket: c.dir + "/haproxy.sock", slots: make([]string, haproxySlots)}
	var config strings.Builder
	// No health checks: the harness says who is ready. No option redispatch: a connection
	// that was given to a replica is not given to another one.
	fmt.Fprintf(&config, "global\n stats socket %s mode 600 level admin\n maxconn 4096\n"+
		"defaults\n mode tcp\n retries 0\n timeout connect 5s\n timeout client 1h\n timeout server 1h\n"+
		"frontend webhooks\n bind %s:443\n default_backend replicas\nbackend replicas\n balance roundrobin\n", h.socket, clusterIP)
	for i := range h.slots {
		fmt.Fprintf(&config, " server s%d 127.0.0.1:%d disabled\n", i, webhookPort)
	}
	file := c.dir + "/haproxy.cfg"
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		return nil, err
	}
	if h.process, err = lab.Start(c.dir, lab.Program{Name: "haproxy", Path: binary, Args: []string{"-db", "-f", file}, OwnGroup: true}); err != nil {
		return nil, err
	}
	return h, h.process.Await(ctx, 10*time.Second, "haproxy", func(context.Context) error { return h.command("show info") })
}

// command gives a command over the socket.
func (h *haproxy) command(text string) error {
	conn, err := net.Dial("unix", h.socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, text+"\n"); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && strings.HasPrefix(text, "set ") {
		if said := strings.TrimSpace(string(answer)); said != "" && !strings.Contains(said, "changed from") && !strings.Contains(said, "no need to change") {
			err = fmt.Errorf("haproxy on %q: %s", text, said)
		}
	}
	return err
}

func (h *haproxy) add(r *replica) error {
	for range h.slots { // a slot that was freed long ago
		h.next = (h.next + 1) % len(h.slots)
		if h.slots[h.next] == "" {
			h.slots[h.next] = r.Name
			server := fmt.Sprintf("set server replicas/s%d ", h.next)
			return errors.Join(h.command(server+"addr "+r.address), h.command(server+"state ready"))
		}
	}
	return errors.New("haproxy has no free server")
}

func (h *haproxy) remove(r *replica) error {
	i := slices.Index(h.slots, r.Name)
	if i < 0 {
		return nil
	}
	h.slots[i] = ""
	return h.command(fmt.Sprintf("set server replicas/s%d state maint", i))
}

func (h *haproxy) close() { h.process.Kill() }

// A forwarder is a balancer of this process's own, at a loopback address.
type forwarder struct {
	listener net.Listener
	done     sync.WaitGroup

	mu       sync.Mutex
	backends []string
	next     int
	conns    map[net.Conn]bool
}

func startForwarder(address string) (*forwarder, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	f := &forwarder{listener: listener, conns: map[net.Conn]bool{}}
	f.done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.done.Go(func() { f.forward(conn) })
		}
	})
	return f, nil
}

func (f *forwarder) forward(in net.Conn) {
	defer func() { _ = in.Close() }()
	out, err := net.Dial("tcp", f.choose())
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	f.hold(true, in, out)
	defer f.hold(false, in, out)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out) // either end may close
		_ = in.Close()
	})
	_, _ = io.Copy(out, in)
	_ = out.Close()
	back.Wait()
}

func (f *forwarder) hold(open bool, conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range conns {
		if open {
			f.conns[conn] = true
		} else {
			delete(f.conns, conn)
		}
	}
}

// choose takes turns.
func (f *forwarder) choose() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.backends) == 0 {
		return "127.0.0.1:1" // refuses
	}
	f.next++
	return f.backends[f.next%len(f.backends)]
}

func (f *forwarder) add(r *replica) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backends = append(f.backends, fmt.Sprintf("%s:%d", r.address, webhookPort))
	return nil
}

func (f *forwarder) remove(r *replica) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backends = slices.DeleteFunc(f.backends, func(b string) bool { return b == fmt.Sprintf("%s:%d", r.address, webhookPort) })
	return nil
}

func (f *forwarder) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.done.Wait()
}

// behindHAProxy is a rolling restart behind haproxy, which stands for kube-proxy: the
// API server knows one address, and its idle connections lead to replicas whose
// endpoint is gone.
func behindHAProxy(ctx context.Context, c *cluster, rounds int, out *result) error {
	h, err := c.startHAProxy(ctx)
	if err != nil {
		return err
	}
	defer h.close()
	if err := c.setRouting(ctx, false); err != nil {
		return err
	}
	c.balancer = h
	defer func() { c.balancer = nil }()
	return errors.Join(rollingRestart(ctx, c, rounds, out), c.setRouting(ctx, true))
}

// behindURL is a rolling restart of replicas that are registered by a loopback URL, with
// a balancer behind it: there is one address, and no Service.
func behindURL(ctx context.Context, c *cluster, rounds int, out *result) error {
	const address = "127.0.0.1:7443"
	f, err := startForwarder(address)
	if err != nil {
		return err
	}
	defer f.close()
	c.balancer, c.url = f, "https://"+address
	defer func() { c.balancer, c.url = nil, "" }()
	return rollingRestart(ctx, c, rounds, out)
}
