// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A controlPlane is etcd and kube-apiserver, each of which can be paused, killed and
// started again on what it had.
type controlPlane struct {
	dir, assets string
	config      *rest.Config // all rights, no rate limit
	kubeconfig  string       // file
	etcd        *process
	apiServer   *process
	// routing is whether the API server picks endpoints of a Service itself. Without,
	// it calls the Service's cluster IP.
	routing bool
}

// The ports are free: nobody else is in the enclosure.
const (
	etcdURL      = "http://127.0.0.1:2379"
	apiServerURL = "https://" + serverAddress + ":6443"
	token        = "of-the-harness"
)

func startControlPlane(ctx context.Context, dir string) (_ *controlPlane, err error) {
	cp := &controlPlane{dir: dir, assets: os.Getenv("KUBEBUILDER_ASSETS"), routing: true}
	if err := os.WriteFile(cp.file("tokens.csv"), []byte(token+",harness,harness,\"system:masters\"\n"), 0o600); err != nil {
		return nil, err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(cp.file("service-accounts.key"), private, 0o600); err != nil {
		return nil, err
	}
	if cp.etcd, err = startProcess(dir, "etcd", filepath.Join(cp.assets, "etcd"),
		"--data-dir", cp.file("etcd"), "--unsafe-no-fsync", "--quota-backend-bytes", "8000000000",
		"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--listen-peer-urls", "http://127.0.0.1:2380"); err != nil {
		return nil, err
	}
	if err := cp.startAPIServer(); err != nil {
		return nil, err
	}
	if err := cp.awaitCertificate(ctx); err != nil {
		return nil, err
	}
	cp.config = &rest.Config{
		Host: apiServerURL, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: cp.file("apiserver/apiserver.crt")},
	}
	cp.kubeconfig = cp.file("kubeconfig")
	if err := writeKubeconfig(cp.config, cp.kubeconfig); err != nil {
		return nil, err
	}
	return cp, cp.awaitAPIServer(ctx)
}

func (cp *controlPlane) file(name string) string { return filepath.Join(cp.dir, name) }

func (cp *controlPlane) startAPIServer() (err error) {
	cp.apiServer, err = startProcess(cp.dir, "kube-apiserver", filepath.Join(cp.assets, "kube-apiserver"),
		"--etcd-servers", etcdURL, "--cert-dir", cp.file("apiserver"),
		"--bind-address", serverAddress, "--advertise-address", serverAddress, "--secure-port", "6443",
		"--service-cluster-ip-range", "10.96.0.0/16", fmt.Sprintf("--enable-aggregator-routing=%t", cp.routing),
		"--token-auth-file", cp.file("tokens.csv"), "--authorization-mode", "RBAC",
		"--service-account-issuer", apiServerURL, "--service-account-key-file", cp.file("service-accounts.key"),
		"--service-account-signing-key-file", cp.file("service-accounts.key"),
		// The watch that sees what is stored must survive a restart: it comes from etcd, which
		// keeps everything.
		"--watch-cache-sizes", "pods#0",
		"--delete-collection-workers", "8", // cleaning up is nothing that a row is about
		"--etcd-compaction-interval", "0",
	)
	return err
}

// awaitCertificate returns when the API server has made its certificate.
func (cp *controlPlane) awaitCertificate(ctx context.Context) error {
	return await(ctx, time.Minute, "the certificate of the API server", func(context.Context) error {
		if cp.apiServer.hasEnded() {
			return final(fmt.Errorf("kube-apiserver ended: %w\n%s", cp.apiServer.err, cp.apiServer.logTail()))
		}
		data, err := os.ReadFile(cp.file("apiserver/apiserver.crt"))
		if err == nil && len(data) == 0 {
			err = errors.New("the file is empty")
		}
		return err
	})
}

// awaitAPIServer returns when /readyz says so.
func (cp *controlPlane) awaitAPIServer(ctx context.Context) error {
	transport, err := rest.TransportFor(cp.config)
	if err != nil {
		return err
	}
	return await(ctx, 2*time.Minute, "the API server to be ready", func(ctx context.Context) error {
		if cp.apiServer.hasEnded() {
			return final(fmt.Errorf("kube-apiserver ended: %w\n%s", cp.apiServer.err, cp.apiServer.logTail()))
		}
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		return getOK(ctx, &http.Client{Transport: transport}, apiServerURL+"/readyz")
	})
}

// staticPodGrace is how long the kubelet gives an API server to end: with watches open,
// it would take longer.
const staticPodGrace = 30 * time.Second

// restartAPIServer ends the API server with that signal and starts it again. It
// returns when it is ready.
func (cp *controlPlane) restartAPIServer(ctx context.Context, with syscall.Signal) error {
	cp.apiServer.signal(with)
	select {
	case <-cp.apiServer.ended:
	case <-time.After(staticPodGrace):
		cp.apiServer.kill()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := cp.startAPIServer(); err != nil {
		return err
	}
	return cp.awaitAPIServer(ctx)
}

// setRouting restarts the API server with or without aggregator routing, unless it
// is so.
func (cp *controlPlane) setRouting(ctx context.Context, on bool) error {
	if cp.routing == on {
		return nil
	}
	cp.routing = on
	return cp.restartAPIServer(ctx, syscall.SIGKILL)
}

func (cp *controlPlane) close() {
	for _, p := range []*process{cp.apiServer, cp.etcd} {
		if p != nil {
			p.kill()
		}
	}
}

func writeKubeconfig(config *rest.Config, file string) error {
	out := clientcmdapi.NewConfig()
	out.Clusters["faults"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile}
	out.AuthInfos["harness"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	out.Contexts["faults"] = &clientcmdapi.Context{Cluster: "faults", AuthInfo: "harness"}
	out.CurrentContext = "faults"
	return clientcmd.WriteToFile(*out, file)
}
