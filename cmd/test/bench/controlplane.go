// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/test/lab"
)

// namespace is where the recorded pods and all PodDefaults live.
const namespace = "team-vision"

// A controlPlane is etcd and kube-apiserver with the CustomResourceDefinitions,
// the namespace and its service accounts in place. Its clients do not limit
// their own rate.
type controlPlane struct {
	*lab.ControlPlane
	config  *rest.Config
	clients kubernetes.Interface // speaks protobuf, as the controllers do
	objects client.Client        // for PodDefaults
	version string
}

// startControlPlane starts the binaries that KUBEBUILDER_ASSETS names, with their files in dir.
func startControlPlane(ctx context.Context, dir string) (_ *controlPlane, err error) {
	definitions, err := crd.All()
	if err != nil {
		return nil, err
	}
	cp := &controlPlane{}
	// The service account plugin adds a token to each pod in a real cluster, and
	// so has to here, as it does by default: it makes a third of a small pod.
	cp.ControlPlane, err = lab.StartControlPlane(ctx, dir, lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS")})
	defer func() {
		if err != nil {
			cp.Kill()
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	if cp.config, err = clientcmd.BuildConfigFromFlags("", cp.Kubeconfig); err != nil {
		return nil, err
	}
	cp.config.QPS = -1
	if _, err := envtest.InstallCRDs(cp.config, envtest.CRDInstallOptions{CRDs: definitions, MaxTime: 2 * time.Minute}); err != nil {
		return nil, fmt.Errorf("installing the definitions: %w", err)
	}
	protobuf := rest.CopyConfig(cp.config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	if cp.clients, err = kubernetes.NewForConfig(protobuf); err != nil {
		return nil, err
	}
	if cp.objects, err = client.New(cp.config, client.Options{Scheme: podDefaultScheme()}); err != nil {
		return nil, err
	}
	version, err := cp.clients.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	cp.version = version.GitVersion
	return cp, cp.createNamespace(ctx)
}

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
