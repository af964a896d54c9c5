// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/test/lab"
)

// How the API server reaches the replicas.
const (
	serviceNamespace = "sallyport-system"
	serviceName      = "webhooks"
	portName         = "webhooks"
	clusterIP        = "10.96.0.10"

	// configurationName is the default of sallyport serve.
	configurationName = "sallyport"
	// authoritySecret is where the replicas keep their authority, by default.
	authoritySecret = "sallyport-authority"
)

// A cluster is a control plane with all that the rows need.
type cluster struct {
	dir      string
	settings settings
	progress progress
	cp       *lab.ControlPlane
	config   *rest.Config         // all rights, no rate limit
	clients  kubernetes.Interface // speaks protobuf
	objects  client.Client        // for PodDefaults
	version  string               // of Kubernetes
	replicas int                  // started so far
	balancer balancer             // nil: the API server picks endpoints itself
	url      string               // by which the replicas are registered; empty: the Service

	// Of the row that runs.
	namespace string
	streams   []*stream
	running   []*replica
}

func openCluster(ctx context.Context, dir string, s settings, progress progress) (_ *cluster, err error) {
	c := &cluster{dir: dir, settings: s, progress: progress}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	progress.sayf("starting etcd and kube-apiserver")
	if c.cp, err = startControlPlane(ctx, dir); err != nil {
		return c, err
	}
	c.config, err = clientcmd.BuildConfigFromFlags("", c.cp.Kubeconfig)
	if err != nil {
		return c, err
	}
	c.config.QPS = -1
	protobuf := rest.CopyConfig(c.config)
	protobuf.ContentType = kuberuntime.ContentTypeProtobuf
	protobuf.WarningHandler = rest.NoWarnings{} // the rows read what they are about
	if c.clients, err = kubernetes.NewForConfig(protobuf); err != nil {
		return c, err
	}
	scheme := kuberuntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return c, err
	}
	definitions, err := crd.All()
	if err != nil {
		return c, err
	}
	if _, err := envtest.InstallCRDs(c.config, envtest.CRDInstallOptions{CRDs: definitions, MaxTime: time.Minute}); err != nil {
		return c, fmt.Errorf("installing the definitions: %w", err)
	}
	if c.objects, err = client.New(c.config, client.Options{Scheme: scheme}); err != nil {
		return c, err
	}
	version, err := c.clients.Discovery().ServerVersion()
	if err != nil {
		return c, err
	}
	c.version = version.GitVersion
	return c, c.createService(ctx)
}

func (c *cluster) close() {
	if c.cp != nil {
		c.cp.Kill()
	}
}

// createService makes the Service, without selector.
func (c *cluster) createService(ctx context.Context) error {
	if err := c.createNamespace(ctx, serviceNamespace); err != nil {
		return err
	}
	_, err := c.clients.CoreV1().Services(serviceNamespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName},
		Spec: corev1.ServiceSpec{
			ClusterIP: clusterIP,
			Ports:     []corev1.ServicePort{{Name: portName, Port: 443, TargetPort: intstr.FromInt32(webhookPort)}},
		},
	}, metav1.CreateOptions{})
	return err
}

// createNamespace makes a namespace with the service account that pods need.
func (c *cluster) createNamespace(ctx context.Context, name string) error {
	_, err := c.clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = c.clients.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
	return err
}

// awaitInjection returns when the API server gets pods injected, in five dry runs one
// after another.
func (c *cluster) awaitInjection(ctx context.Context) error {
	const inARow = 5
	streak, n := 0, 0
	return lab.Await(ctx, time.Minute, "pods to be injected", func(ctx context.Context) error {
		for streak < inARow {
			ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
			n++
			pod, err := c.clients.CoreV1().Pods(c.namespace).Create(ctx, newPod(fmt.Sprintf("probe-%d", n), 0, typicalPodDefaults),
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			cancel()
			if err == nil {
				err = checkInjected(pod)
			}
			if err != nil {
				streak = 0
				return err
			}
			streak++
		}
		return nil
	})
}

// runRow runs one row in a namespace of its own.
func (c *cluster) runRow(ctx context.Context, r row) result {
	rounds := r.rounds
	if c.settings.short {
		rounds = r.shortRounds
	}
	c.progress.sayf("%s: %d rounds", r.name, rounds)
	began := time.Now()
	out := result{Row: r.name, What: r.what, Allowed: r.allowed, Rounds: rounds}
	c.namespace = "row-" + r.name
	err := c.createNamespace(ctx, c.namespace)
	if err == nil {
		err = c.createPodDefaults(ctx, typicalPodDefaults)
	}
	if err == nil {
		err = r.run(ctx, c, rounds, &out)
	}
	c.endLeft()
	if err != nil {
		out.problemf("the row could not be run to its end: %v", err)
	}
	if err := c.clean(ctx); err != nil {
		out.problemf("cleaning up: %v", err)
	}
	out.Seconds = time.Since(began).Seconds()
	for _, problem := range out.Problems {
		c.progress.sayf("  PROBLEM: %s", problem)
	}
	c.progress.sayf("  %s: %s", r.name, out.verdict())
	return out
}

// endLeft ends what the row has left running, if it broke off.
func (c *cluster) endLeft() {
	for _, s := range c.streams {
		s.abandon()
	}
	for _, r := range c.running {
		r.Kill()
	}
	c.streams, c.running = nil, nil
}

// clean removes what would disturb the next row.
func (c *cluster) clean(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	return lab.Await(ctx, 5*time.Minute, "cleaning up", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute) // what is done then is done
		defer cancel()
		if err := c.clients.CoreV1().Pods(c.namespace).DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
			return err
		}
		if err := c.dropLeases(ctx); err != nil {
			return err
		}
		slices := c.clients.DiscoveryV1().EndpointSlices(serviceNamespace)
		if err := slices.DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
			return err
		}
		return c.objects.DeleteAllOf(ctx, &v1alpha1.PodDefault{}, client.InNamespace(c.namespace))
	})
}

// dropLeases lets the next replicas elect a leader at once, where one that led was
// killed: its lease would run for a while yet.
func (c *cluster) dropLeases(ctx context.Context) error {
	return c.clients.CoordinationV1().Leases(serviceNamespace).DeleteCollection(ctx, atOnce, metav1.ListOptions{})
}

// awaitLeader returns when somebody leads. Only the leader writes configurations.
func (c *cluster) awaitLeader(ctx context.Context) error {
	return lab.Await(ctx, time.Minute, "a leader", func(ctx context.Context) error {
		leases, err := c.clients.CoordinationV1().Leases(serviceNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, lease := range leases.Items {
			if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
				return nil
			}
		}
		return fmt.Errorf("%d leases, none is held", len(leases.Items))
	})
}

// machine says what the run ran on.
func machine() string {
	return fmt.Sprintf("%d CPUs, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, strings.TrimPrefix(runtime.Version(), "go"))
}
