// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// server is a process of a real command, `sallyport serve` or a cloud controller manager.
type server struct {
	name    string // for people
	cmd     *exec.Cmd
	log     string // file
	url     string
	metrics string // URL
	ended   chan struct{}
	err     error // how it ended, once it has
}

// startServer starts the command outside of the cluster: the API server calls it
// by URL. Everything else is as in a cluster, with the same rights.
func startServer(command, kubeconfig, folder string) (*server, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	s := &server{
		name:    "sallyport serve",
		log:     filepath.Join(folder, "sallyport.log"),
		url:     "https://127.0.0.1:" + strconv.Itoa(ports[0]),
		metrics: "http://127.0.0.1:" + strconv.Itoa(ports[1]),
		ended:   make(chan struct{}),
	}
	args, err := lab.Arguments(folder, "serve",
		"--kubeconfig", kubeconfig,
		"--url", s.url,
		"--bind-address", "127.0.0.1",
		"--secure-port", strconv.Itoa(ports[0]),
		"--metrics-bind-address", strings.TrimPrefix(s.metrics, "http://"),
		"--authority-secret", serverNamespace+"/sallyport-authority",
		lab.Set("serving.drainMin", "0s"), lab.Set("serving.drainTimeout", "0s"), // there is no Service that routes to it
	)
	if err != nil {
		return nil, err
	}
	return s, s.start(command, args...)
}

func (s *server) start(command string, args ...string) error {
	log, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	s.cmd = exec.Command(command, args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	// Ctrl-C goes to every process of the terminal's group. The server ends in its
	// turn, when the demo says so.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	return nil
}

// waitReady waits until the server says on its webhook port that it is ready.
func (s *server) waitReady(ctx context.Context) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		// As the kubelet's probes do. The API server verifies the certificate.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	return poll(ctx, 20*time.Second, s.name+" was ready", func(ctx context.Context) (bool, error) {
		if err := s.running(); err != nil {
			return false, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/readyz", nil)
		if err != nil {
			return false, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return false, nil // it does not listen yet
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK, nil
	})
}

// running returns an error if the process has ended.
func (s *server) running() error {
	select {
	case <-s.ended:
		return fmt.Errorf("%s has ended: %w", s.name, exitOf(s.err))
	default:
		return nil
	}
}

func exitOf(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// stop ends the process the way a kubelet does, and tells if that did not work.
func (s *server) stop() error {
	if err := s.running(); err != nil {
		return err
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.ended:
		if s.err != nil {
			return fmt.Errorf("%s, asked to end: %w", s.name, s.err)
		}
		return nil
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.ended
		return fmt.Errorf("%s did not end within 10s of SIGTERM", s.name)
	}
}

// lastLines of the log, for a person to read.
func (s *server) lastLines(n int) string {
	data, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// freePorts are free when it returns; nothing keeps them so.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
