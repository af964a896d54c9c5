// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// APIServerOption changes the API server that [StartAPIServer] starts.
type APIServerOption func(*envtest.Environment)

// WithAPIServerFlag sets a flag of kube-apiserver, named without dashes, instead
// of what envtest sets. Without values it removes the flag, which is how
// disable-admission-plugins is lifted (envtest disables ServiceAccount).
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

// WithCRDs installs definitions and waits until the API server serves them. The
// API server of the test gets copies.
func WithCRDs(crds ...*apiextensionsv1.CustomResourceDefinition) APIServerOption {
	return func(env *envtest.Environment) {
		for _, crd := range crds {
			env.CRDs = append(env.CRDs, crd.DeepCopy())
		}
	}
}

// StartAPIServer starts etcd and kube-apiserver from the folder in the
// environment variable KUBEBUILDER_ASSETS, and stops them when the test ends. It
// returns a configuration with all rights (group system:masters), without a
// rate limit on the client. The test fails, and is not skipped, if
// KUBEBUILDER_ASSETS is not set or the servers do not start.
//
// Authorization is RBAC: rest.Config's Impersonate gives the rights of others.
// No controllers run, so that namespaces never finish deletion, nothing is
// scheduled and no service accounts are created.
func StartAPIServer(t testing.TB, options ...APIServerOption) *rest.Config {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test`, which builds etcd and kube-apiserver once and sets it")
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			t.Fatalf("KUBEBUILDER_ASSETS holds no usable %s (%v): unset it and run `make test`", name, err)
		}
	}

	never := false
	const patience = 2 * time.Minute // on a machine that does other work too
	env := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		UseExistingCluster:       &never,
		ControlPlaneStartTimeout: patience,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: patience},
		ControlPlaneStopTimeout:  time.Minute,
	}
	if folder, ok := memory(); ok { // what is written is thrown away: it need not reach a disk
		data, err := os.MkdirTemp(folder, "sallyporttest-etcd-")
		if err == nil {
			env.ControlPlane.Etcd = &envtest.Etcd{DataDir: data}
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

// Kubeconfig writes a file with which kubectl, or a server in a process of its
// own, reaches the API server that [StartAPIServer] started, and returns its
// path. Whom the configuration impersonates is kept. The file goes away when
// the test ends.
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
