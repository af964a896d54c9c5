// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/test/lab"
)

// cluster is etcd and kube-apiserver on loopback, and clients of it.
type cluster struct {
	*lab.ControlPlane
	client  *kubernetes.Clientset
	objects dynamic.Interface
}

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	podDefaults = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1alpha1", Resource: "poddefaults"}
)

// startCluster starts the binaries in assets, in the folder. Its admission is that of a plain
// cluster.
func startCluster(ctx context.Context, assets, folder string) (*cluster, error) {
	c := &cluster{}
	var err error
	if c.ControlPlane, err = lab.StartControlPlane(ctx, folder, lab.ControlPlaneOptions{Assets: assets, Users: []lab.User{serverAccount}}); err != nil {
		return c, fmt.Errorf("starting the control plane in %s: %w", assets, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return c, err
	}
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return c, err
	}
	c.objects, err = dynamic.NewForConfig(config)
	return c, err
}

// serverAccount is whom the API server takes Sallyport for.
var serverAccount = lab.User{
	Name:   "system:serviceaccount:" + serverNamespace + ":sallyport",
	Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + serverNamespace},
}

// version is what the API server says it is.
func (c *cluster) version() (string, error) {
	info, err := c.client.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}

// createPod creates a pod as it stands and returns it as stored.
func (c *cluster) createPod(ctx context.Context, namespace string, pod map[string]any, dryRun bool) (map[string]any, error) {
	options := metav1.CreateOptions{FieldManager: "demo", FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	out, err := c.objects.Resource(pods).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: copyOf(pod)}, options)
	if err != nil {
		return nil, err
	}
	if dryRun {
		return out.Object, nil
	}
	out, err = c.objects.Resource(pods).Namespace(namespace).Get(ctx, out.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return out.Object, nil
}

// createExcluded asks the API server what it would store if the webhook left the
// pod alone.
func (c *cluster) createExcluded(ctx context.Context, namespace string, pod map[string]any) (map[string]any, error) {
	twin := unstructured.Unstructured{Object: copyOf(pod)}
	annotations := twin.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[excludeAnnotation] = "true"
	twin.SetAnnotations(annotations)
	name := twin.GetName()
	twin.SetName(name + "-twin") // the pod itself may be there already
	out, err := c.createPod(ctx, namespace, twin.Object, true)
	if err != nil {
		return nil, err
	}
	twin.Object = out
	twin.SetName(name)
	return twin.Object, nil
}

func (c *cluster) listPodDefaults(ctx context.Context, namespace string) ([]map[string]any, error) {
	found, err := c.objects.Resource(podDefaults).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := make([]map[string]any, 0, len(found.Items))
	for _, item := range found.Items {
		out = append(out, item.Object)
	}
	return out, nil
}

func copyOf(obj map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: obj}).DeepCopy().Object
}
