// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// SharedVariable names the kubeconfig of the API server that the tests of a run share. `make
// test` sets it, by test/lab/shared.
const SharedVariable = "SALLYPORT_TEST_KUBECONFIG"

// SharedFlags are those of kube-apiserver: nobody makes the service accounts that pods need.
var SharedFlags = []string{"--disable-admission-plugins=ServiceAccount"}

// APIServer is an API server for tests that let others work beside them: that of the run, if
// there is one, or else one that ends with the test. It has no controllers and no definitions.
// The configuration has all rights, and no rate limit.
//
// A test keeps to what [Namespace] makes, and to names of its own for what is in no namespace.
// It narrows its webhooks to its namespaces, and deletes them, and its definitions, at its
// end. One that restarts the API server, sets its flags, is about every object of a kind, or
// needs a definition that others need too, starts its own, and says why.
func APIServer(t testing.TB) *rest.Config {
	t.Helper()
	kubeconfig := os.Getenv(SharedVariable)
	if kubeconfig == "" {
		cp, err := StartControlPlane(t.Context(), t.TempDir(), ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: SharedFlags})
		t.Cleanup(cp.Kill)
		if err != nil {
			t.Fatalf("starting the API server: %v", err)
		}
		kubeconfig = cp.Kubeconfig
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		err = rest.LoadTLSFiles(config) // for those who hand on what is in the file
	}
	if err != nil {
		t.Fatalf("%s: %v", SharedVariable, err)
	}
	config.QPS = -1
	return config
}

// Namespace makes a namespace that no other test has, and returns its name, which is in its
// label kubernetes.io/metadata.name too. It stays: no controller is there to empty it.
func Namespace(t testing.TB, config *rest.Config) string {
	t.Helper()
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := client.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}
