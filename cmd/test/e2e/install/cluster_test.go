// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/lab/kubelet"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
	"github.com/sallyport-io/sallyport/test/lab/clusternet"
)

// cluster is an API server with the real controllers of workloads, endpoints and deletion,
// and a node whose pods are processes and servers of this machine: what is applied runs.
type cluster struct {
	*apiServer
	kubeconfig string
	network    *clusternet.Network
	// images run containers, by the beginning of the image's name. Others run as if they
	// did nothing.
	images map[string]func(*testing.T, *corev1.Pod) (*container, error)

	mu      sync.Mutex
	running map[types.UID]*container
	ending  map[types.UID]bool
}

// container is what a pod does.
type container struct {
	address string           // of the pod
	ports   map[int32]string // where ports of the pod are, on this machine
	ready   func(context.Context) bool
	stop    func()
	isReady bool
}

func startCluster(t *testing.T, images map[string]func(*cluster, *testing.T, *corev1.Pod) (*container, error)) *cluster {
	t.Helper()
	network := clusternet.Start(t)
	options := []sallyporttest.APIServerOption{
		sallyporttest.WithAPIServerFlag("disable-admission-plugins"), sallyporttest.WithCRDs(otherDefinitions(t)...),
	}
	for name, value := range network.Flags() {
		options = append(options, sallyporttest.WithAPIServerFlag(name, value))
	}
	return runCluster(t, sallyporttest.StartAPIServer(t, options...), network, images)
}

// runCluster is startCluster with an API server that is there.
func runCluster(t *testing.T, config *rest.Config, network *clusternet.Network, images map[string]func(*cluster, *testing.T, *corev1.Pod) (*container, error)) *cluster {
	t.Helper()
	c := &cluster{apiServer: connect(t, config), kubeconfig: sallyporttest.Kubeconfig(t, config), network: network,
		images: map[string]func(*testing.T, *corev1.Pod) (*container, error){}, running: map[types.UID]*container{}, ending: map[types.UID]bool{}}
	for image, run := range images {
		c.images[image] = func(t *testing.T, pod *corev1.Pod) (*container, error) { return run(c, t, pod) }
	}
	controllers := "deployment-controller,replicaset-controller,endpointslice-controller,serviceaccount-controller,namespace-controller," +
		"garbage-collector-controller,clusterrole-aggregation-controller"
	if lab.KubernetesMinor(t) < 37 { // before, the API server's proxy asks for what this one writes
		controllers += ",endpoints-controller"
	}
	lab.StartBinary(t, "kube-controller-manager", "--kubeconfig", c.kubeconfig, "--leader-elect=false", "--secure-port", "0",
		"--controllers", controllers)
	host := kubelet.Start(t, c.client, func(ctx context.Context, name, port string) (net.Conn, error) {
		namespace, name, _ := strings.Cut(name, "/")
		pod, err := c.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return network.Dial(ctx, net.JoinHostPort(pod.Status.PodIP, port))
	})
	ctx, cancel := context.WithCancel(context.Background())
	watch := informers.NewSharedInformerFactory(c.client, 0)
	pods := watch.Core().V1().Pods().Lister()
	watch.StartWithContext(ctx)
	var node sync.WaitGroup
	node.Go(func() {
		for ; ctx.Err() == nil; lab.Sleep(ctx, 100*time.Millisecond) { // as a kubelet looks at its pods from time to time
			c.runPods(ctx, t, host.Node, pods)
		}
	})
	t.Cleanup(func() {
		cancel()
		node.Wait()
		watch.Shutdown()
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, running := range c.running {
			running.stop()
		}
	})
	return c
}

// runPods does what the scheduler and a kubelet do, once. What fails is tried again.
func (c *cluster) runPods(ctx context.Context, t *testing.T, node string, pods corev1listers.PodLister) {
	list, err := pods.List(labels.Everything())
	if err != nil {
		t.Error(err)
	}
	for _, pod := range list {
		if len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		if err := c.runPod(ctx, t, node, pod.DeepCopy()); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			t.Errorf("running pod %s: %v", pod.Name, err)
		}
	}
}

func (c *cluster) runPod(ctx context.Context, t *testing.T, node string, pod *corev1.Pod) error {
	pods := c.client.CoreV1().Pods(pod.Namespace)
	c.mu.Lock()
	running, ending := c.running[pod.UID], c.ending[pod.UID]
	c.mu.Unlock()
	switch {
	case ending:
		return nil
	case pod.DeletionTimestamp != nil:
		c.mu.Lock()
		delete(c.running, pod.UID)
		c.ending[pod.UID] = true
		c.mu.Unlock()
		go func() {
			if running != nil {
				running.stop()
				for port := range running.ports {
					c.network.Route(fmt.Sprintf("%s:%d", running.address, port), "")
				}
			}
			now := int64(0)
			_ = pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		}()
		return nil
	case pod.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
	case running == nil:
		running = &container{ready: func(context.Context) bool { return true }, stop: func() {}}
		for image, run := range c.images {
			if strings.HasPrefix(pod.Spec.Containers[0].Image, image) {
				var err error
				if running, err = run(t, pod); err != nil {
					return err
				}
			}
		}
		running.address = c.network.NewAddress()
		for port, to := range running.ports {
			c.network.Route(fmt.Sprintf("%s:%d", running.address, port), to)
		}
		c.mu.Lock()
		c.running[pod.UID] = running
		c.mu.Unlock()
	case running.isReady:
		return nil
	}
	ready := running.ready(ctx)
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, running.address, []corev1.PodIP{{IP: running.address}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()}}
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	running.isReady = ready
	return nil
}

// runSallyport runs a container with the command under test: with its arguments, a token
// of its account, and ports of this machine.
func runSallyport(command string) func(*cluster, *testing.T, *corev1.Pod) (*container, error) {
	return func(c *cluster, t *testing.T, pod *corev1.Pod) (*container, error) {
		token, err := c.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(t.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		config := rest.AnonymousClientConfig(c.config)
		config.BearerToken = token.Status.Token
		args, err := c.withFolders(t, pod)
		if err != nil {
			return nil, err
		}
		server, err := lab.Serve(t.TempDir(), lab.Serving{Name: pod.Name, Base: args, Binary: command, Kubeconfig: sallyporttest.Kubeconfig(t, config)},
			lab.Set("serving.drainMin", "2s"), lab.Set("serving.drainTimeout", "5s"))
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("log of %s:\n%s", pod.Name, server.Log())
			}
		})
		out := &container{ports: map[int32]string{}}
		for _, p := range pod.Spec.Containers[0].Ports {
			url := map[string]string{"webhooks": server.URL, "metrics": server.Metrics}[p.Name]
			_, address, _ := strings.Cut(url, "://")
			out.ports[p.ContainerPort] = address
		}
		out.ready = func(ctx context.Context) bool { return server.Ready(ctx) == nil }
		out.stop = func() {
			if err := server.Stop(time.Minute); err != nil {
				t.Error(err)
			}
		}
		return out, nil
	}
}

// withFolders are the arguments of a pod, with folders of this machine where it mounts
// ConfigMaps.
func (c *cluster) withFolders(t *testing.T, pod *corev1.Pod) ([]string, error) {
	args := slices.Clone(pod.Spec.Containers[0].Args)
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name || volume.ConfigMap == nil {
				continue
			}
			configMap, err := c.client.CoreV1().ConfigMaps(pod.Namespace).Get(t.Context(), volume.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			folder := t.TempDir()
			for name, text := range configMap.Data {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					return nil, err
				}
			}
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], mount.MountPath, folder)
			}
		}
	}
	return args, nil
}
