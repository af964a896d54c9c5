// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
)

// APIServerOption configures the API server of [StartAPIServer].
type APIServerOption func(*envtest.Environment)

// WithAPIServerFlag sets a flag of kube-apiserver, named without dashes, and overrides
// envtest's value. Without values it removes the flag, for example
// disable-admission-plugins (envtest disables ServiceAccount).
func WithAPIServerFlag(name string, values ...string) APIServerOption {
	return func(env *envtest.Environment) {
		flags := env.ControlPlane.GetAPIServer().Configure()
		if len(values) == 0 {
			flags.Disable(name)
			return
		}
		flags.Set(name, values...)
	}
}

// WithCRDs installs copies of definitions and waits until the API server serves them.
func WithCRDs(crds ...*apiextensionsv1.CustomResourceDefinition) APIServerOption {
	return func(env *envtest.Environment) {
		for _, crd := range crds {
			env.CRDs = append(env.CRDs, crd.DeepCopy())
		}
	}
}

// StartAPIServer starts etcd and kube-apiserver from the directory in the environment
// variable KUBEBUILDER_ASSETS, and stops them when the test ends. It returns a
// configuration with all permissions (group system:masters) and without a client-side rate
// limit. If KUBEBUILDER_ASSETS is not set or the servers do not start, the test fails
// instead of being skipped.
//
// Authorization is RBAC: use Impersonate of rest.Config for the permissions of other users.
// No controllers run, so namespaces never finish deletion, pods are not scheduled and no
// service accounts are created.
func StartAPIServer(t testing.TB, options ...APIServerOption) *rest.Config {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test`, which builds etcd and kube-apiserver once and sets it")
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			t.Fatalf("KUBEBUILDER_ASSETS contains no usable %s (%v): unset it and run `make test`", name, err)
		}
	}

	quiet.Do(func() { time.AfterFunc(time.Until(started.Add(quietAfter)), discardLog) })
	never := false
	const patience = 2 * time.Minute // on a busy machine
	env := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		UseExistingCluster:       &never,
		ControlPlaneStartTimeout: patience,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: patience},
		ControlPlaneStopTimeout:  time.Minute,
	}
	apiServer, etcd := env.ControlPlane.GetAPIServer(), &envtest.Etcd{}
	apiServer.SecureServing.Address, apiServer.SecureServing.Port = "127.0.0.1", strconv.Itoa(freeport.For(t))
	etcd.URL = &url.URL{Scheme: "http", Host: onLoopback(freeport.For(t))}
	etcd.Configure().Set("listen-peer-urls", "http://"+onLoopback(freeport.For(t)))
	env.ControlPlane.Etcd = etcd
	if folder, ok := memory(); ok { // the data is temporary and need not be on disk
		data, err := os.MkdirTemp(folder, "sallyporttest-etcd-")
		if err == nil {
			env.ControlPlane.Etcd.DataDir = data
			t.Cleanup(func() { _ = os.RemoveAll(data) }) // after etcd has stopped
		}
	}
	for _, option := range options {
		option(env)
	}
	config, err := env.Start()
	t.Cleanup(func() { // also after a failed start, which may leave etcd behind
		if err := env.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("starting the API server: %v", err)
	}
	config.QPS = -1
	return config
}

// controller-runtime, which envtest uses, prints a stack trace if no logger was set in the
// first 30 seconds of a process, and discards its log from then on. A test that sets none
// gets the latter without the former; one that sets a logger in time keeps it.
var (
	started = time.Now()
	quiet   sync.Once
)

const quietAfter = 29 * time.Second

// discardLog has no effect if a logger has been set.
func discardLog() { controllerlog.SetLogger(logr.Discard()) }

// Kubeconfig writes a kubeconfig file for the API server of [StartAPIServer], for kubectl
// or a server in another process, and returns its path. It preserves the impersonated user.
// The file is deleted when the test ends.
func Kubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	const name = "sallyporttest"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
		Impersonate:           config.Impersonate.UserName,
		ImpersonateGroups:     config.Impersonate.Groups,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		t.Fatalf("writing a kubeconfig: %v", err)
	}
	return path
}
