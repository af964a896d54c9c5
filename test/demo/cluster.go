// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// cluster is etcd and kube-apiserver on loopback, and clients of it.
type cluster struct {
	env     *envtest.Environment
	folder  string // for what may be thrown away
	kubectl string
	// kubeconfig is the file of a cluster administrator.
	kubeconfig string
	config     *rest.Config
	client     *kubernetes.Clientset
	objects    dynamic.Interface
}

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	podDefaults = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1alpha1", Resource: "poddefaults"}
)

// startCluster starts the binaries in assets. Its admission is that of a plain
// cluster, with service accounts, which envtest leaves out if not told otherwise.
func startCluster(assets, folder string) (*cluster, error) {
	no := false
	c := &cluster{
		env:        &envtest.Environment{BinaryAssetsDirectory: assets, UseExistingCluster: &no},
		folder:     folder,
		kubectl:    filepath.Join(assets, "kubectl"),
		kubeconfig: filepath.Join(folder, "kubeconfig"),
	}
	c.env.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins")
	config, err := c.env.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane in %s: %w", assets, err), c.stop())
	}
	c.config = config
	if err := c.connect(); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) connect() (err error) {
	if err := os.WriteFile(c.kubeconfig, c.env.KubeConfig, 0o600); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.objects, err = dynamic.NewForConfig(c.config)
	return err
}

func (c *cluster) stop() error { return c.env.Stop() }

// version is what the API server says it is.
func (c *cluster) version() (string, error) {
	info, err := c.client.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}

// addUser writes a kubeconfig file for another user.
func (c *cluster) addUser(name string, groups ...string) (file string, err error) {
	user, err := c.env.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	if err != nil {
		return "", err
	}
	data, err := user.KubeConfig()
	if err != nil {
		return "", err
	}
	file = filepath.Join(c.folder, "sallyport.kubeconfig")
	return file, os.WriteFile(file, data, 0o600)
}

// run runs kubectl as the administrator. What it prints is in the error only.
func (c *cluster) run(ctx context.Context, stdin []byte, args ...string) error {
	cmd := exec.CommandContext(ctx, c.kubectl, append([]string{"--cache-dir", filepath.Join(c.folder, "kubectl")}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
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

// poll calls f every few milliseconds until it says yes or fails.
func poll(ctx context.Context, timeout time.Duration, what string, f func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("waited %s in vain until %s", timeout, what))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := f(ctx)
		if done || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
