// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/config/crd"
)

// namespace is where the recorded pods and all PodDefaults live.
const namespace = "team-vision"

// A controlPlane is etcd and kube-apiserver with the CustomResourceDefinitions,
// the namespace and its service accounts in place. Its clients do not limit
// their own rate.
type controlPlane struct {
	env        *envtest.Environment
	config     *rest.Config
	kubeconfig string               // a file, for an administrator
	clients    kubernetes.Interface // speaks protobuf, as the controllers do
	objects    client.Client        // for PodDefaults
	version    string
}

// startControlPlane starts the binaries that KUBEBUILDER_ASSETS names and
// writes the kubeconfig to dir.
func startControlPlane(ctx context.Context, dir string) (_ *controlPlane, err error) {
	if err := checkAssets(os.Getenv("KUBEBUILDER_ASSETS")); err != nil {
		return nil, err
	}
	definitions, err := crd.All()
	if err != nil {
		return nil, err
	}
	cp := &controlPlane{env: &envtest.Environment{CRDs: definitions}}
	// The service account plugin adds a token to each pod in a real cluster, and
	// so has to here: it makes a third of a small pod.
	cp.env.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins")
	defer func() {
		if err != nil {
			err = errors.Join(err, cp.env.Stop())
		}
	}()
	if cp.config, err = cp.env.Start(); err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	cp.config.QPS = -1

	cp.kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(cp.kubeconfig, cp.env.KubeConfig, 0o600); err != nil {
		return nil, err
	}
	protobuf := rest.CopyConfig(cp.config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	if cp.clients, err = kubernetes.NewForConfig(protobuf); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if cp.objects, err = client.New(cp.config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	version, err := cp.clients.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	cp.version = version.GitVersion
	return cp, cp.createNamespace(ctx)
}

func checkAssets(dir string) error {
	const remedy = "run `make bench`, or set it to the folder that `make controlplane` prints"
	if dir == "" {
		return errors.New("KUBEBUILDER_ASSETS is not set: " + remedy)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("KUBEBUILDER_ASSETS holds no %s: %w; %s", name, err, remedy)
		}
	}
	return nil
}

func (cp *controlPlane) stop() error { return cp.env.Stop() }

func (cp *controlPlane) createNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   namespace,
		Labels: map[string]string{"app.kubernetes.io/part-of": "kubeflow-profile"},
	}}
	if _, err := cp.clients.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, name := range []string{"default", "default-editor"} { // no controller is there to make them
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := cp.clients.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
