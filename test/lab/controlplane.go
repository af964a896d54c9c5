// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
)

// ControlPlaneOptions say what [StartControlPlane] starts.
type ControlPlaneOptions struct {
	Assets  string // folder of etcd and kube-apiserver
	Address string // of kube-apiserver; 127.0.0.1 if empty. EndpointSlices refuse loopback addresses
	Port    int    // of kube-apiserver; a free one if 0
	Users   []User // besides the administrator
	Etcd    []string
	Flags   []string // of kube-apiserver
}

// User is somebody whom the API server knows.
type User struct {
	Name   string
	Groups []string
}

// A ControlPlane is etcd and kube-apiserver, each of which can be paused, killed and started
// again on what it had. Authorization is RBAC, and no controllers run.
type ControlPlane struct {
	Etcd, APIServer *Process
	EtcdURL         string // for clients of etcd, without authentication
	URL             string
	Token           string // of an administrator
	CAFile          string // of the API server's certificate
	Kubeconfig      string // file, for the administrator
	Flags           []string

	folder  string
	options ControlPlaneOptions
	args    []string // of kube-apiserver, before Flags
	client  *http.Client
}

const administrator = "harness"

// StartControlPlane starts etcd and kube-apiserver with their files in a folder, and returns
// when the API server is ready. After an error what was started is there for [ControlPlane.Kill].
func StartControlPlane(ctx context.Context, folder string, o ControlPlaneOptions) (*ControlPlane, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1"
	}
	cp := &ControlPlane{folder: folder, options: o, Flags: o.Flags, Token: token(administrator), CAFile: filepath.Join(folder, "apiserver", "apiserver.crt")}
	if err := CheckAssets(o.Assets, "etcd", "kube-apiserver"); err != nil {
		return cp, err
	}
	ports := [3]int{o.Port}
	for i := range ports {
		if ports[i] == 0 {
			var err error
			if ports[i], err = freeport.Get(); err != nil {
				return cp, err
			}
		}
	}
	cp.URL = "https://" + net.JoinHostPort(o.Address, strconv.Itoa(ports[0]))
	if err := cp.writeFiles(); err != nil {
		return cp, err
	}
	etcd, peers := fmt.Sprintf("http://127.0.0.1:%d", ports[1]), fmt.Sprintf("http://127.0.0.1:%d", ports[2])
	cp.EtcdURL = etcd
	var err error
	cp.Etcd, err = Start(folder, Program{Name: "etcd", Path: filepath.Join(o.Assets, "etcd"), OwnGroup: true, Args: append([]string{
		// What is written is thrown away: it need not reach a disk.
		"--data-dir", cp.file("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default=" + peers,
	}, o.Etcd...)})
	if err != nil {
		return cp, err
	}
	cp.args = []string{
		"--etcd-servers", etcd, "--cert-dir", cp.file("apiserver"),
		"--bind-address", o.Address, "--advertise-address", o.Address, "--secure-port", strconv.Itoa(ports[0]),
		"--service-cluster-ip-range", "10.96.0.0/16", "--token-auth-file", cp.file("tokens.csv"), "--authorization-mode", "RBAC",
		"--service-account-issuer", cp.URL, "--service-account-key-file", cp.file("service-accounts.key"),
		"--service-account-signing-key-file", cp.file("service-accounts.key"),
	}
	if net.ParseIP(o.Address).IsLoopback() { // endpoints refuse it: the Service kubernetes has none then
		cp.args = append(cp.args, "--endpoint-reconciler-type=none")
	}
	return cp, cp.startAPIServer(ctx)
}

// CheckAssets says what is missing in a folder of binaries, and what to do.
func CheckAssets(folder string, names ...string) error {
	const remedy = "run it by make, or set it to the folder that `make controlplane` prints"
	if folder == "" {
		return errors.New("KUBEBUILDER_ASSETS is not set: " + remedy)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("KUBEBUILDER_ASSETS holds no %s: %w; %s", name, err, remedy)
		}
	}
	return nil
}

// keyAndCertificate makes a key, and a certificate of it for an API server at an address, which
// would otherwise spend a tenth of its start on RSA keys.
func keyAndCertificate(address string) (key, certificate []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.ParseIP(address), net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	text, err := x509.MarshalECPrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

func token(user string) string { return "of-" + user }

func (cp *ControlPlane) file(name string) string { return filepath.Join(cp.folder, name) }

func (cp *ControlPlane) writeFiles() error {
	key, certificate, err := keyAndCertificate(cp.options.Address)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	cp.client = &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	if err := os.MkdirAll(cp.file("apiserver"), 0o700); err != nil {
		return err
	}
	tokens := ""
	for _, user := range append([]User{{administrator, []string{"system:masters"}}}, cp.options.Users...) {
		tokens += fmt.Sprintf("%s,%s,%s,%q\n", token(user.Name), user.Name, user.Name, strings.Join(user.Groups, ","))
	}
	for name, text := range map[string][]byte{
		"tokens.csv":              []byte(tokens),
		"service-accounts.key":    key,
		"apiserver/apiserver.crt": certificate, "apiserver/apiserver.key": key,
	} {
		if err := os.WriteFile(cp.file(name), text, 0o600); err != nil {
			return err
		}
	}
	cp.Kubeconfig, err = cp.KubeconfigOf(administrator)
	return err
}

// KubeconfigOf writes a file with which a user reaches the API server, and returns its path.
func (cp *ControlPlane) KubeconfigOf(user string) (string, error) {
	text, err := json.Marshal(map[string]any{ // which is YAML
		"apiVersion": "v1", "kind": "Config", "current-context": "lab",
		"clusters": []any{map[string]any{"name": "lab", "cluster": map[string]any{"server": cp.URL, "certificate-authority": cp.CAFile}}},
		"users":    []any{map[string]any{"name": user, "user": map[string]any{"token": token(user)}}},
		"contexts": []any{map[string]any{"name": "lab", "context": map[string]any{"cluster": "lab", "user": user}}},
	})
	if err != nil {
		return "", err
	}
	file := cp.file("kubeconfig")
	if user != administrator {
		file = cp.file(strings.ReplaceAll(user, ":", "-") + ".kubeconfig") // colons separate files in $KUBECONFIG
	}
	return file, os.WriteFile(file, text, 0o600)
}

// startAPIServer starts kube-apiserver and returns when it is ready.
func (cp *ControlPlane) startAPIServer(ctx context.Context) (err error) {
	cp.APIServer, err = Start(cp.folder, Program{
		Name: "kube-apiserver", Path: filepath.Join(cp.options.Assets, "kube-apiserver"), Args: append(cp.args, cp.Flags...), OwnGroup: true,
	})
	if err != nil {
		return err
	}
	return cp.APIServer.Await(ctx, 2*time.Minute, "the API server to be ready", func(ctx context.Context) error {
		_, err := Get(ctx, cp.client, cp.URL+"/readyz")
		return err
	})
}

// staticPodGrace is how long the kubelet gives an API server to end: with watches open, it
// would take longer.
const staticPodGrace = 30 * time.Second

// RestartAPIServer ends kube-apiserver with that signal, starts it again with [ControlPlane.Flags],
// and returns when it is ready.
func (cp *ControlPlane) RestartAPIServer(ctx context.Context, with syscall.Signal) error {
	cp.APIServer.Signal(with)
	select {
	case <-cp.APIServer.Ended:
	case <-time.After(staticPodGrace):
		cp.APIServer.Kill()
	case <-ctx.Done():
		return ctx.Err()
	}
	return cp.startAPIServer(ctx)
}

// UpgradeAPIServer replaces kube-apiserver by that of another folder, on the same etcd.
func (cp *ControlPlane) UpgradeAPIServer(ctx context.Context, assets string) error {
	if err := CheckAssets(assets, "kube-apiserver"); err != nil {
		return err
	}
	cp.options.Assets = assets
	return cp.RestartAPIServer(ctx, syscall.SIGTERM)
}

// Kill ends all without a word: what they had is thrown away.
func (cp *ControlPlane) Kill() {
	for _, p := range []*Process{cp.APIServer, cp.Etcd} {
		if p != nil {
			p.Kill()
		}
	}
}
