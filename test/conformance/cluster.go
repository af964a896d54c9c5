// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// binaries are what is started, besides the webhook.
var binaries = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "e2e.test"}

// Addresses inside the enclosure, all local to its loopback interface.
const (
	podNetwork     = "10.244.0.1" // /16: whatever address kwok gives to a pod, testwebhook answers there
	serverAddress  = "10.243.0.1" // of kube-apiserver; a Service cannot have loopback addresses
	serviceNetwork = "10.96.0.1"  // /16: nobody listens; the API server dials the endpoints of a Service itself
)

const (
	nodeName = "node-of-kwok"
	patience = 3 * time.Minute
)

// servers are the test webhooks: what the suites name the Secret in which they leave a
// certificate, and the port that they have the Service lead to.
var servers = []struct {
	name, secret string
	port         int
	command      []string
}{
	{"testwebhook", "sample-webhook-secret", 8444, nil},
	{"testwebhook-conversion", "sample-custom-resource-conversion-webhook-secret", 9444, []string{"crd-conversion-webhook"}},
}

// A cluster is a control plane, a node that kwok plays, and the test webhooks in the
// place of the pods that only seem to run.
type cluster struct {
	*lab.ControlPlane
	dir, assets, webhook string
	client               *http.Client
	processes            []*lab.Process // besides the control plane, in the order of their start
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) asset(name string) string { return filepath.Join(c.assets, name) }

// open starts everything and returns when pods can run. What was started is there to
// close also after an error.
func (c *cluster) open(ctx context.Context, say func(format string, args ...any)) (err error) {
	say("starting etcd and kube-apiserver")
	c.ControlPlane, err = lab.StartControlPlane(ctx, c.dir, lab.ControlPlaneOptions{
		Assets: c.assets, Address: serverAddress,
		// The API server dials a Service at its endpoints: no kube-proxy is needed.
		Flags: []string{"--enable-aggregator-routing=true"},
	})
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(c.CAFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	c.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	say("starting kube-controller-manager, kube-scheduler, kwok and testwebhook")
	return c.startRest(ctx)
}

// start starts a process that reads and writes nothing of the person's who runs this.
func (c *cluster) start(name, binary string, args ...string) (*lab.Process, error) {
	p, err := lab.Start(c.dir, lab.Program{Name: name, Path: binary, Args: args, Env: []string{"HOME=" + c.dir, "KUBECONFIG="}, OwnGroup: true})
	if err == nil {
		c.processes = append(c.processes, p)
	}
	return p, err
}

func (c *cluster) startRest(ctx context.Context) error {
	for _, s := range servers {
		server, err := c.start(s.name, c.webhook, append(slices.Clone(s.command),
			"--port", strconv.Itoa(s.port), "--tls-secret-name", s.secret, "--kubeconfig", c.Kubeconfig)...)
		if err != nil {
			return err
		}
		if err := server.Await(ctx, patience, s.name+" to listen", func(ctx context.Context) error {
			connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(podNetwork, strconv.Itoa(s.port)))
			if err != nil {
				return err
			}
			return connection.Close()
		}); err != nil {
			return err
		}
	}
	if _, err := c.start("kube-controller-manager", c.asset("kube-controller-manager"), "--kubeconfig", c.Kubeconfig,
		"--leader-elect=false", "--root-ca-file", c.CAFile,
		"--service-account-private-key-file", c.file("service-accounts.key"), "--cert-dir", c.file("controller-manager"),
		// kwok tells of its node once a minute, which would be taken for silence.
		"--node-monitor-grace-period", "1h",
		"--kube-api-qps", "500", "--kube-api-burst", "1000"); err != nil {
		return err
	}
	if _, err := c.start("kube-scheduler", c.asset("kube-scheduler"), "--kubeconfig", c.Kubeconfig,
		"--leader-elect=false", "--cert-dir", c.file("scheduler")); err != nil {
		return err
	}
	kwok, err := c.start("kwok", c.asset("kwok"), "--kubeconfig", c.Kubeconfig, "--manage-all-nodes=true", "--cidr", podNetwork+"/16")
	if err != nil {
		return err
	}
	node := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": nodeName}}
	if _, err := c.ask(ctx, http.MethodPost, "/api/v1/nodes", node); err != nil {
		return err
	}
	return kwok.Await(ctx, patience, "the node to be ready", func(ctx context.Context) error {
		text, err := c.ask(ctx, http.MethodGet, "/api/v1/nodes/"+nodeName, nil)
		if err != nil {
			return err
		}
		return nodeReady(text)
	})
}

// nodeReady is nil if the condition Ready of the node is true, and the controller that
// looks at it has taken the taint away with which a node begins.
func nodeReady(text []byte) error {
	var node struct {
		Spec struct {
			Taints []struct{ Key string }
		}
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal(text, &node); err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("the node has the taint %s", node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return nil
		}
	}
	return errors.New("the node is not ready")
}

// ask sends a request to the API server, and returns the body of a good answer.
func (c *cluster) ask(ctx context.Context, method, path string, object any) ([]byte, error) {
	var body io.Reader
	if object != nil {
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(text[:min(len(text), 300)]))
	}
	return text, err
}

// failed names the first of the processes that is not there any more.
func (c *cluster) failed() error {
	for _, p := range append([]*lab.Process{c.Etcd, c.APIServer}, c.processes...) {
		if err := p.Failed(); err != nil {
			return err
		}
	}
	return nil
}

// close ends all processes.
func (c *cluster) close() {
	for _, p := range slices.Backward(c.processes) {
		p.Kill()
	}
	if c.ControlPlane != nil {
		c.Kill()
	}
}
