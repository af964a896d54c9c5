// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/test/lab"
)

// A site is what all servers of a run share.
type site struct {
	dir         string // certificate, logs, files
	certificate []byte // PEM
	cp          *controlPlane
	sallyport   string // binary
	podDefaults string // file
	peers       map[string]installedPeer

	leaderMetrics string // address of the leader that was started last
}

// A server is a process that answers reviews at url and a path.
type server struct {
	*lab.Process
	url   string
	probe string        // URL of its readiness
	ready time.Duration // from the start of the process to the first 200 of that
	peer  *peer         // nil if it is none

	input io.Closer // ends a server of this binary when it goes away
}

// commands say how each server is started. A port is free when they are asked.
var commands = map[string]func(s *site, port int) ([]string, error){
	floorName: func(s *site, port int) ([]string, error) {
		self, err := os.Executable()
		return []string{self, "floor", "-port", strconv.Itoa(port), "-cert-dir", s.dir}, err
	},
	conversionFloorName: func(s *site, port int) ([]string, error) {
		self, err := os.Executable()
		return []string{self, conversionFloorName, "-port", strconv.Itoa(port), "-cert-dir", s.dir}, err
	},
	volumePatchName: func(s *site, port int) ([]string, error) {
		self, err := os.Executable()
		return []string{self, "volume-patch", "-port", strconv.Itoa(port), "-cert-dir", s.dir}, err
	},
	cloudName: func(s *site, port int) ([]string, error) {
		self, err := os.Executable()
		return []string{self, cloudName, "-port", strconv.Itoa(port), "-cert-dir", s.dir}, err
	},
	neighbourName: func(s *site, port int) ([]string, error) {
		self, err := os.Executable()
		return []string{
			self, "controller-runtime", "-port", strconv.Itoa(port), "-cert-dir", s.dir, "-poddefaults", s.podDefaults,
		}, err
	},
	libraryName: func(s *site, port int) ([]string, error) {
		self, err := os.Executable()
		return []string{self, "library", "-port", strconv.Itoa(port), "-cert-dir", s.dir}, err
	},
	sallyportName: func(s *site, port int) ([]string, error) { return s.serve(port) },
	cachedName:    func(s *site, port int) ([]string, error) { return s.serve(port) },
	consistentName: func(s *site, port int) ([]string, error) {
		return s.serve(port, lab.Set("webhooks.poddefault.freshness", poddefault.Consistent))
	},
	usageName: func(s *site, port int) ([]string, error) {
		return s.serve(port, lab.Set("webhooks.poddefault.usage", poddefault.UsageCheck))
	},
	leaderName: func(s *site, port int) ([]string, error) {
		metrics, err := freeport.Get()
		if err != nil {
			return nil, err
		}
		s.leaderMetrics = net.JoinHostPort("127.0.0.1", strconv.Itoa(metrics))
		return s.serve(port, "--controllers", "poddefault-status,poddefault-drift", "--metrics-bind-address", s.leaderMetrics)
	},
	policiesName: func(s *site, port int) ([]string, error) {
		file, err := writePolicies(s.dir)
		if err != nil {
			return nil, err
		}
		return s.serve(port, "--config", file)
	},
	datasetsName: func(s *site, port int) ([]string, error) { return s.serve(port, "--webhooks", "dataset") },
}

// serve is the command line of sallyport's own server.
func (s *site) serve(port int, more ...string) ([]string, error) {
	metrics, err := freeport.Get()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(s.dir, "config-")
	if err != nil {
		return nil, err
	}
	return lab.Arguments(folder, append([]string{
		s.sallyport, "serve",
		"--kubeconfig", s.cp.Kubeconfig,
		"--registration", "None",
		"--controllers=", // whose work is not a review's
		"--bind-address", "127.0.0.1",
		"--secure-port", strconv.Itoa(port),
		"--metrics-bind-address", net.JoinHostPort("127.0.0.1", strconv.Itoa(metrics)),
		"--certificate-source", "Files",
		"--tls-cert-file", filepath.Join(s.dir, certFile),
		"--tls-private-key-file", filepath.Join(s.dir, keyFile),
	}, more...)...)
}

// start runs a server and returns when it is ready.
func (s *site) start(ctx context.Context, name string) (_ *server, err error) {
	port, err := freeport.Get()
	if err != nil {
		return nil, err
	}
	srv := &server{url: "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	srv.probe = srv.url + "/readyz"
	var argv []string
	if command, known := commands[name]; known {
		argv, err = command(s, port)
	} else if p, installed := s.peers[name]; installed {
		srv.peer = &p.peer
		argv, srv.probe, err = p.start(s, port)
	} else {
		err = fmt.Errorf("no server %q", name)
	}
	if err != nil {
		return nil, err
	}
	input, closer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = input.Close() }() // the process has its own
	srv.input = closer
	started := time.Now()
	if srv.Process, err = lab.Start(s.dir, lab.Program{Name: name, Path: argv[0], Args: argv[1:], Stdin: input, Env: []string{"GOGC="}}); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx, srv); err != nil {
		err = fmt.Errorf("%s did not become ready: %w; its log ends with:\n%s", name, err, srv.LogTail())
		srv.stop()
		return nil, err
	}
	srv.ready = time.Since(started)
	if srv.peer != nil {
		if err := srv.peer.awaitPolicies(ctx, s); err != nil {
			srv.stop()
			return nil, fmt.Errorf("not all policies of %s became ready: %w", name, err)
		}
	}
	return srv, nil
}

// stop ends the process at once: no client is left that draining would serve.
func (srv *server) stop() {
	srv.Kill()
	_ = srv.input.Close()
}

// awaitReady asks the readiness probe again and again until it says 200: more often than [lab.Await] does,
// because how long that takes is measured.
func (s *site) awaitReady(ctx context.Context, srv *server) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: s.trust()}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for {
		_, err := lab.Get(ctx, client, srv.probe)
		if err == nil {
			return nil
		}
		if ended := srv.Failed(); ended != nil {
			return ended
		}
		if !lab.Sleep(ctx, 5*time.Millisecond) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// trust is the TLS side of a client of the servers, as an API server that calls
// a Service has it: HTTP/1.1 only, no session resumption; and TLS 1.3, which the
// servers have to speak.
func (s *site) trust() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.certificate)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
}

// protocol is the HTTP version that a server and kube-apiserver agree on where
// the webhook is registered by a loopback URL, for which it offers HTTP/2.
func (s *site) protocol(ctx context.Context, srv *server) (string, error) {
	config := s.trust()
	config.NextProtos = []string{"h2", "http/1.1"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", srv.url[len("https://"):])
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if conn.(*tls.Conn).ConnectionState().NegotiatedProtocol == "h2" {
		return "HTTP/2", nil
	}
	return "HTTP/1.1", nil
}
