// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
)

// Serving says how [Serve] starts a server.
type Serving struct {
	Name       string // of the process; "sallyport" if empty
	Binary     string
	Kubeconfig string
	Address    string // 127.0.0.1 if empty
	Port       int    // of webhooks; a free one if 0
	Metrics    int    // port of metrics and probes; a free one if 0
	ByURL      bool   // it registers itself with the URL of its address
	// Base are the arguments of a container, which all others override; "serve" if empty.
	Base     []string
	Env      []string
	OwnGroup bool
}

// A Server is a process of sallyport serve.
type Server struct {
	*Process
	URL     string // of the webhooks
	Metrics string // URL of the port of metrics
	Probes  string // URL of the port that is asked for /readyz: that of the webhooks, as a kubelet does
}

// Serve starts sallyport serve and waits for nothing. Its files are in a folder. Arguments, of
// which some may be made by [Set], come last, and win.
func Serve(folder string, s Serving, args ...string) (*Server, error) {
	if s.Name == "" {
		s.Name = "sallyport"
	}
	if s.Address == "" {
		s.Address = "127.0.0.1"
	}
	for _, port := range []*int{&s.Port, &s.Metrics} {
		if *port == 0 {
			var err error
			if *port, err = freeport.Get(); err != nil {
				return nil, err
			}
		}
	}
	metrics := net.JoinHostPort(s.Address, strconv.Itoa(s.Metrics))
	url := "https://" + net.JoinHostPort(s.Address, strconv.Itoa(s.Port))
	out := &Server{URL: url, Probes: url, Metrics: "http://" + metrics}
	all := slices.Clone(s.Base)
	if len(all) == 0 {
		all = []string{"serve"}
	}
	all = append(all, "--kubeconfig", s.Kubeconfig, "--bind-address", s.Address, "--secure-port", strconv.Itoa(s.Port), "--metrics-bind-address", metrics)
	if s.ByURL {
		all = append(all, "--url", out.URL)
	}
	configuration, err := os.MkdirTemp(folder, s.Name+"-")
	if err != nil {
		return nil, err
	}
	if all, err = Arguments(configuration, append(all, args...)...); err != nil {
		return nil, err
	}
	out.Process, err = Start(folder, Program{Name: s.Name, Path: s.Binary, Args: all, OwnGroup: s.OwnGroup,
		// It spaces its collections itself, as in a container, and not as `make test` does for tests.
		Env: append([]string{"GOGC="}, s.Env...)})
	return out, err
}

// Probes is a client as the kubelet's prober: it looks at no certificate and keeps no
// connection.
var Probes = &http.Client{Transport: &http.Transport{
	DisableKeepAlives: true,
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as the kubelet does
}}

// AwaitReady waits until the server is ready, and fails at once if it ends.
func (s *Server) AwaitReady(ctx context.Context, limit time.Duration) error {
	return s.Await(ctx, limit, s.Name+" to be ready", s.Ready)
}

// Ready is nil if the server says that it is, within a second.
func (s *Server) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := Get(ctx, Probes, s.Probes+"/readyz")
	return err
}

// Metric is the value of a line of /metrics.
func (s *Server) Metric(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := Get(ctx, Probes, s.Metrics+"/metrics")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", errors.New("there is no metric " + name)
}
