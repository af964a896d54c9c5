// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
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
)

// binaries are what is started, besides the webhook.
var binaries = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "e2e.test"}

// The ports are free: nobody else is in the enclosure.
const (
	etcdURL      = "http://127.0.0.1:2379"
	apiServerURL = "https://" + serverAddress + ":6443"
	token        = "of-the-harness"
	nodeName     = "node-of-kwok"
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
	dir, assets, webhook string
	client               *http.Client
	processes            []*process // in the order of their start
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) kubeconfig() string { return c.file("kubeconfig") }

// open starts everything and returns when pods can run. What was started is there to
// close also after an error.
func (c *cluster) open(ctx context.Context, say func(format string, args ...any)) error {
	if err := c.writeFiles(); err != nil {
		return err
	}
	say("starting etcd and kube-apiserver")
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	say("starting kube-controller-manager, kube-scheduler, kwok and testwebhook")
	return c.startRest(ctx)
}

func (c *cluster) writeFiles() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	kubeconfig := map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "conformance",
		"clusters": []any{map[string]any{"name": "conformance", "cluster": map[string]any{
			"server": apiServerURL, "certificate-authority": c.file("apiserver/apiserver.crt")}}},
		"users":    []any{map[string]any{"name": "harness", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "conformance", "context": map[string]any{"cluster": "conformance", "user": "harness"}}},
	}
	text, err := json.Marshal(kubeconfig) // which is YAML
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"tokens.csv":           []byte(token + ",harness,harness,\"system:masters\"\n"),
		"service-accounts.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"kubeconfig":           text,
	} {
		if err := os.WriteFile(c.file(name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) start(name, binary string, args ...string) (*process, error) {
	p, err := start(c.dir, name, binary, args...)
	if err == nil {
		c.processes = append(c.processes, p)
	}
	return p, err
}

func (c *cluster) asset(name string) string { return filepath.Join(c.assets, name) }

func (c *cluster) startAPIServer(ctx context.Context) error {
	if _, err := c.start("etcd", c.asset("etcd"),
		"--data-dir", c.file("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL, "--listen-peer-urls", "http://127.0.0.1:2380"); err != nil {
		return err
	}
	server, err := c.start("kube-apiserver", c.asset("kube-apiserver"),
		"--etcd-servers", etcdURL, "--cert-dir", c.file("apiserver"),
		"--bind-address", serverAddress, "--advertise-address", serverAddress, "--secure-port", "6443",
		// The API server dials a Service at its endpoints: no kube-proxy is needed.
		"--service-cluster-ip-range", "10.96.0.0/16", "--enable-aggregator-routing=true",
		"--token-auth-file", c.file("tokens.csv"), "--authorization-mode", "RBAC",
		"--service-account-issuer", apiServerURL, "--service-account-key-file", c.file("service-accounts.key"),
		"--service-account-signing-key-file", c.file("service-accounts.key"),
	)
	if err != nil {
		return err
	}
	if err := await(ctx, "the certificate of the API server", server, func(context.Context) error {
		authority, err := os.ReadFile(c.file("apiserver/apiserver.crt"))
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(authority) {
			return errors.New("the file is not written yet")
		}
		c.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
		return nil
	}); err != nil {
		return err
	}
	return await(ctx, "the API server to be ready", server, func(ctx context.Context) error {
		_, err := c.ask(ctx, http.MethodGet, "/readyz", nil)
		return err
	})
}

func (c *cluster) startRest(ctx context.Context) error {
	for _, s := range servers {
		server, err := c.start(s.name, c.webhook, append(slices.Clone(s.command),
			"--port", strconv.Itoa(s.port), "--tls-secret-name", s.secret, "--kubeconfig", c.kubeconfig())...)
		if err != nil {
			return err
		}
		if err := await(ctx, s.name+" to listen", server, func(ctx context.Context) error {
			connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(podNetwork, strconv.Itoa(s.port)))
			if err != nil {
				return err
			}
			return connection.Close()
		}); err != nil {
			return err
		}
	}
	if _, err := c.start("kube-controller-manager", c.asset("kube-controller-manager"), "--kubeconfig", c.kubeconfig(),
		"--leader-elect=false", "--root-ca-file", c.file("apiserver/apiserver.crt"),
		"--service-account-private-key-file", c.file("service-accounts.key"), "--cert-dir", c.file("controller-manager"),
		// kwok tells of its node once a minute, which would be taken for silence.
		"--node-monitor-grace-period", "1h",
		"--kube-api-qps", "500", "--kube-api-burst", "1000"); err != nil {
		return err
	}
	if _, err := c.start("kube-scheduler", c.asset("kube-scheduler"), "--kubeconfig", c.kubeconfig(),
		"--leader-elect=false", "--cert-dir", c.file("scheduler")); err != nil {
		return err
	}
	kwok, err := c.start("kwok", c.asset("kwok"), "--kubeconfig", c.kubeconfig(), "--manage-all-nodes=true", "--cidr", podNetwork+"/16")
	if err != nil {
		return err
	}
	node := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": nodeName}}
	if _, err := c.ask(ctx, http.MethodPost, "/api/v1/nodes", node); err != nil {
		return err
	}
	return await(ctx, "the node to be ready", kwok, func(ctx context.Context) error {
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
	request, err := http.NewRequestWithContext(ctx, method, apiServerURL+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
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
	for _, p := range c.processes {
		if err := p.failed(); err != nil {
			return err
		}
	}
	return nil
}

// close ends all processes.
func (c *cluster) close() {
	for _, p := range slices.Backward(c.processes) {
		p.kill()
	}
}
