// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/test/lab"
)

// A site is what all servers of a run share.
type site struct {
	dir         string // certificate, logs, files
	certificate []byte // PEM
	cp          *controlPlane
	sallyport   string // binary
	podDefaults string // file
}

// A server is a process that answers reviews at url and a path.
type server struct {
	name  string
	url   string
	pid   int
	ready time.Duration // from the start of the process to the first 200 of /readyz

	cmd    *exec.Cmd
	input  io.Closer // ends a server of this binary when it goes away
	log    string
	exited chan struct{}
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
	metrics, err := freePort()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(s.dir, "config-")
	if err != nil {
		return nil, err
	}
	return lab.Arguments(folder, append([]string{
		s.sallyport, "serve",
		"--kubeconfig", s.cp.kubeconfig,
		"--registration", "none",
		"--controllers=", // whose work is not a review's
		"--bind-address", "127.0.0.1",
		"--secure-port", strconv.Itoa(port),
		"--metrics-bind-address", net.JoinHostPort("127.0.0.1", strconv.Itoa(metrics)),
		"--certificate-source", "files",
		"--tls-cert-file", filepath.Join(s.dir, certFile),
		"--tls-private-key-file", filepath.Join(s.dir, keyFile),
	}, more...)...)
}

// start runs a server and returns when it is ready.
func (s *site) start(ctx context.Context, name string) (_ *server, err error) {
	command, known := commands[name]
	if !known {
		return nil, fmt.Errorf("no server %q", name)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	argv, err := command(s, port)
	if err != nil {
		return nil, err
	}
	out, err := os.CreateTemp(s.dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the process has its own

	srv := &server{name: name, log: out.Name(), exited: make(chan struct{})}
	srv.url = "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	srv.cmd = exec.Command(argv[0], argv[1:]...)
	srv.cmd.Stdout, srv.cmd.Stderr = out, out
	if srv.input, err = srv.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	started := time.Now()
	if err := srv.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = srv.cmd.Wait() // it ends by being killed
		close(srv.exited)
	}()
	srv.pid = srv.cmd.Process.Pid
	if err := s.awaitReady(ctx, srv); err != nil {
		err = fmt.Errorf("%s did not become ready: %w; its log ends with:\n%s", name, err, srv.logTail())
		srv.stop()
		return nil, err
	}
	srv.ready = time.Since(started)
	return srv, nil
}

// stop ends the process at once: no client is left that draining would serve.
func (srv *server) stop() {
	_ = srv.cmd.Process.Kill() // it may be gone
	<-srv.exited
	_ = srv.input.Close()
}

// logTail returns the end of what the process has written.
func (srv *server) logTail() []byte {
	const limit = 4 << 10
	text, err := os.ReadFile(srv.log)
	if err != nil {
		return []byte(err.Error())
	}
	if len(text) > limit {
		text = text[len(text)-limit:]
	}
	return bytes.TrimSpace(text)
}

// awaitReady asks /readyz again and again until it says 200.
func (s *site) awaitReady(ctx context.Context, srv *server) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: s.trust()}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var last error
	for {
		if last = readiness(ctx, client, srv.url); last == nil {
			return nil
		}
		select {
		case <-srv.exited:
			return errors.New("the process has ended")
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func readiness(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text))
	}
	return err
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

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
