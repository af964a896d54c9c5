// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/test/fluid"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// patience is how long anything may take that needs no more than a moment: tests end
// when it has happened, and fail when it has not after this.
const patience = 2 * time.Minute

// cluster is an API server with a scheduler and nodes, and the command under test.
type cluster struct {
	config     *rest.Config
	kubeconfig string
	client     client.Client
	assets     string
	binary     string
	metrics    string // of the server under test
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{assets: os.Getenv("KUBEBUILDER_ASSETS"), binary: lab.Command(t, "cmd/sallyport")}
	c.config = sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(fluid.Definitions("CacheRuntime")...))
	c.kubeconfig = sallyporttest.Kubeconfig(t, c.config)
	var err error
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	if c.client, err = client.New(c.config, client.Options{Scheme: types}); err != nil {
		t.Fatal(err)
	}
	return c
}

// startScheduling starts a scheduler and what plays the nodes.
func (c *cluster) startScheduling(t *testing.T) {
	t.Helper()
	c.start(t, filepath.Join(c.assets, "kube-scheduler"), "--kubeconfig", c.kubeconfig, "--authentication-kubeconfig", c.kubeconfig,
		"--authorization-kubeconfig", c.kubeconfig, "--leader-elect=false", "--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(freeport.For(t)), "--cert-dir", t.TempDir())
	c.start(t, filepath.Join(c.assets, "kwok"), "--kubeconfig", c.kubeconfig, "--manage-all-nodes")
}

// startServer starts the command with the rights that it prints, and waits until it is
// registered. Without Service, its user is one that is bound to them here.
func (c *cluster) startServer(t *testing.T, configuration string) {
	t.Helper()
	const name, namespace = "dataset", "sallyport-system"
	c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	file := filepath.Join(t.TempDir(), "sallyport.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\n"+configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	manifests := exec.Command(c.binary, "manifests", "--config", file, "--service", namespace+"/webhooks", "--configuration-name", name, "--part", "rbac")
	printed, err := manifests.Output()
	if err != nil {
		t.Fatal(err)
	}
	apply := exec.Command(filepath.Join(c.assets, "kubectl"), "--kubeconfig", c.kubeconfig, "apply", "--server-side", "-f", "-")
	apply.Stdin = bytes.NewReader(printed)
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = "system:serviceaccount:" + namespace + ":sallyport"
	config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
	server, err := lab.Serve(t.TempDir(), lab.Serving{Binary: c.binary, Kubeconfig: sallyporttest.Kubeconfig(t, config), ByURL: true},
		"--config", file, "--configuration-name", name, "--authority-secret", namespace+"/sallyport-authority")
	if err != nil {
		t.Fatal(err)
	}
	c.metrics = server.Metrics
	endWithTest(t, server.Process)
	if err := server.AwaitReady(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	configurations := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}}
	eventually(t, "the webhook configuration", func(ctx context.Context) (bool, error) {
		err := c.client.Get(ctx, client.ObjectKey{Name: name}, configurations)
		return err == nil, err
	})
	t.Cleanup(func() {
		if strings.Contains(server.Log(), "forbidden") {
			t.Errorf("the server lacks a right:\n%s", server.Log())
		}
	})
}

// start runs a process until the test ends. Its log is shown if the test fails.
func (c *cluster) start(t *testing.T, name string, args ...string) {
	t.Helper()
	process, err := lab.Start(t.TempDir(), lab.Program{Name: filepath.Base(name), Path: name, Args: args})
	if err != nil {
		t.Fatalf("%v (run `make test`, which builds it once)", err)
	}
	endWithTest(t, process)
}

// endWithTest ends a process that must not have ended before.
func endWithTest(t *testing.T, process *lab.Process) {
	t.Helper()
	t.Cleanup(func() {
		if err := process.Failed(); err != nil {
			t.Error(err)
		}
		_ = process.Stop(30 * time.Second) // parts of Kubernetes end with a status of their own
		if t.Failed() {
			t.Logf("log of %s:\n%s", process.Name, process.Log())
		}
	})
}

func (c *cluster) get(ctx context.Context, path string) (string, error) {
	text, err := lab.Get(ctx, lab.Probes, c.metrics+path)
	return string(text), err
}

func (c *cluster) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := c.client.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

// namespace makes a namespace with the service account that pods need.
func (c *cluster) namespace(t *testing.T, name string) {
	t.Helper()
	c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	c.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
}

// node adds a node with the labels, ready for pods.
func (c *cluster) node(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{Capacity: room, Allocatable: room}}
	c.create(t, node)
	// The API server marks new nodes as not ready, and a controller that does not run here
	// takes that back.
	c.change(t, name, func(node *corev1.Node) { node.Spec.Taints = nil })
}

// change changes a node.
func (c *cluster) change(t *testing.T, name string, change func(*corev1.Node)) {
	t.Helper()
	eventually(t, "the node "+name+" to be changed", func(ctx context.Context) (bool, error) {
		node := &corev1.Node{}
		if err := c.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return false, err
		}
		change(node)
		err := c.client.Update(ctx, node)
		return err == nil, err
	})
}

// cordon closes nodes for pods, or opens them again. When it returns, the scheduler knows
// of those that are closed: it has found no place there for a pod that has to run there.
func (c *cluster) cordon(t *testing.T, cordoned bool, names ...string) {
	t.Helper()
	for _, name := range names {
		c.change(t, name, func(node *corev1.Node) { node.Spec.Unschedulable = cordoned })
		for cordoned && c.fits(t, name) {
		}
	}
}

// fits tells whether the scheduler puts a pod on a node.
func (c *cluster) fits(t *testing.T, node string) bool {
	t.Helper()
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", GenerateName: "probe-"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", Image: "app:1"}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}},
			}}},
		},
	}
	c.create(t, probe)
	eventually(t, "the scheduler to look for a place on "+node, func(ctx context.Context) (bool, error) {
		err := c.client.Get(ctx, client.ObjectKeyFromObject(probe), probe)
		return err == nil && (probe.Spec.NodeName != "" || unschedulable(probe)), err
	})
	if err := c.client.Delete(t.Context(), probe, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	return probe.Spec.NodeName != ""
}

func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable
	})
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	lab.Eventually(t.Context(), t, patience, what, condition)
}
