// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

// soon is how long controllers may take for what they try again after ever longer times.
const soon = 4 * time.Minute

// TestOwners creates pods as clusters do: by the controllers of Deployments and
// StatefulSets, for a node that kwok plays.
func TestOwners(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	startNode(t, e)

	const name = "owners"
	e.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"e2e": name}}})
	args := []string{lab.Set("webhooks.poddefault.guard", "Backstop"), "--controllers", "poddefault-index,poddefault-drift,poddefault-status"}
	s := e.serve(t, name, args...)
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))

	t.Run("pods of a Deployment and of a StatefulSet are injected and run", func(t *testing.T) {
		e.create(t, deployment(name, "web", "1", ""))
		e.create(t, statefulSet(name, "db", ""))
		for _, app := range []string{"web", "db"} {
			eventuallyWithin(t, soon, "pods of "+app+" to run", func(ctx context.Context) (bool, error) { return e.running(ctx, name, app, 2) })
		}
	})
	t.Run("a Service leads to the port of an injected proxy", func(t *testing.T) { testProxyService(t, e, name) })
	t.Run("a denied pod shows its reason in the event of its owner", func(t *testing.T) {
		e.create(t, deployment(name, "fights", "1", "another"))
		e.create(t, statefulSet(name, "fights-too", "another"))
		for kind, app := range map[string]string{"ReplicaSet": "fights-", "StatefulSet": "fights-too"} {
			e.awaitEvent(t, name, kind, app, "FailedCreate",
				"conflict occurred while applying poddefaults: env on pod:", "env FROM_PODDEFAULT of container main")
		}
	})
	s.stop(t) // also if only a later one is run: two servers that lead would fight
	t.Run("drift counts what is in the pods, and restarts what differs", func(t *testing.T) { testDrift(t, e, name, args...) })
	s = e.serve(t, name, args...)
	t.Run("a restart stops when pods cannot be created, and not because of a failure that is over", func(t *testing.T) {
		for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
			t.Run(kind, func(t *testing.T) { testRestartFails(t, e, name, kind) })
		}
	})
	t.Run("pods of the unselected are made while every server is down, and those of others once one is back", func(t *testing.T) {
		e.awaitPolicy(t, name, admissionregistrationv1.Ignore)
		eventuallyWithin(t, soon, "the index", func(ctx context.Context) (bool, error) { return e.indexed(ctx, name, 1) })
		s.Kill()
		eventuallyWithin(t, soon, "the policy to know of the PodDefault", func(ctx context.Context) (bool, error) {
			err := e.client.Create(ctx, simplePod(name, "probe"), client.DryRunAll)
			return err != nil && strings.Contains(err.Error(), "Sallyport did not answer"), nil
		})
		e.create(t, deployment(name, "other", "", ""))
		e.create(t, deployment(name, "waits", "1", ""))
		eventuallyWithin(t, soon, "pods that nothing selects to run", func(ctx context.Context) (bool, error) { return e.running(ctx, name, "other", 2) })
		e.awaitEvent(t, name, "ReplicaSet", "waits-", "FailedCreate", "Sallyport did not answer: env.")
		e.serve(t, name, lab.Set("webhooks.poddefault.guard", "Backstop"), "--controllers", "poddefault-index")
		eventuallyWithin(t, soon, "pods that waited to run", func(ctx context.Context) (bool, error) { return e.running(ctx, name, "waits", 2) })
	})
	t.Run("a change reaches the workloads of each step, also if the leader is killed in one", func(t *testing.T) {
		s.Kill() // it would move the steps, too
		testRollout(t, e)
	})
}

// testProxyService applies examples/sidecars/oauth-proxy, and looks where its Service leads:
// to the port on which the flags of the proxy have it listen, and to no other of the pod.
func testProxyService(t *testing.T, e *env, namespace string) {
	folder := "../../../examples/sidecars/oauth-proxy/"
	pd, service, app := &kubeflowv1alpha1.PodDefault{}, &corev1.Service{}, &corev1.Pod{}
	for file, into := range map[string]client.Object{"poddefault.yaml": pd, "service.yaml": service, "app.yaml": app} {
		text, err := os.ReadFile(folder + file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		into.SetNamespace(namespace)
	}
	e.create(t, service)
	app.Spec.NodeName = playedNode
	probe := app.DeepCopy()
	probe.Name = "probe-proxy"
	e.createSoon(t, pd, probe, meta.Mark(pd.Name))
	e.create(t, app)

	t.Cleanup(func() { // others count the PodDefaults of the namespace
		if err := e.client.Delete(context.Background(), pd); err != nil {
			t.Error(err)
		}
	})

	args := strings.Join(pd.Spec.Sidecars[0].Args, " ")
	if !strings.Contains(args, "--http-address=0.0.0.0:4180 ") || !strings.Contains(args, "--upstream=http://127.0.0.1:8080 ") {
		t.Fatalf("the proxy listens, or asks, elsewhere: %s", args)
	}
	eventuallyWithin(t, soon, "the Service to lead to the proxy", func(ctx context.Context) (bool, error) {
		var slices discoveryv1.EndpointSliceList
		if err := e.client.List(ctx, &slices, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}); err != nil {
			return false, err
		}
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.TargetRef == nil || endpoint.TargetRef.Name != app.Name || endpoint.Conditions.Ready == nil || !*endpoint.Conditions.Ready {
					continue
				}
				if len(slice.Ports) != 1 || *slice.Ports[0].Port != 4180 {
					return false, fmt.Errorf("the Service leads to %v", slice.Ports)
				}
				return true, nil
			}
		}
		return false, nil
	})
}

// running tells whether so many pods of an app run, each injected unless it is the one
// that nothing selects.
func (e *env) running(ctx context.Context, namespace, app string, want int) (bool, error) {
	var pods corev1.PodList
	if err := e.client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
		return false, err
	}
	n := 0
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		if injected := len(pod.Spec.Containers[0].Env) == 1; injected != (app != "other") {
			return false, nil
		}
		n++
	}
	return n == want, nil
}

// awaitEvent waits for an event of an owner whose name begins like that.
func (e *env) awaitEvent(t *testing.T, namespace, kind, name, reason string, texts ...string) {
	t.Helper()
	eventuallyWithin(t, soon, "the event "+reason+" of "+kind+" "+name, func(ctx context.Context) (bool, error) {
		var events corev1.EventList
		if err := e.client.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		for _, event := range events.Items {
			found := event.InvolvedObject.Kind == kind && strings.HasPrefix(event.InvolvedObject.Name, name) && event.Reason == reason
			for _, text := range texts {
				found = found && strings.Contains(event.Message, text)
			}
			if found {
				return true, nil
			}
		}
		return false, nil
	})
}

// template is a pod's; the value is of the variable that the PodDefault sets.
func template(app, use, value string) corev1.PodTemplateSpec {
	out := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		// Bound already: there is no scheduler.
		Spec: corev1.PodSpec{NodeName: playedNode, Containers: []corev1.Container{{Name: "main", Image: "jupyter"}}},
	}
	if use != "" {
		out.Labels["use"] = "true"
	}
	if value != "" {
		out.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "FROM_PODDEFAULT", Value: value}}
	}
	return out
}

func deployment(namespace, name, use, value string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name, use, value),
		},
	}
}

func statefulSet(namespace, name, value string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(2)), ServiceName: name, PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name, "1", value),
		},
	}
}

const playedNode = "node-of-kwok"

// startNode starts the controllers that make pods, and a node that runs them.
func startNode(t *testing.T, e *env) {
	t.Helper()
	lab.StartBinary(t, "kube-controller-manager", "--kubeconfig", e.kubeconfig, "--leader-elect=false", "--secure-port", "0",
		"--kube-api-qps", "500", "--kube-api-burst", "500",
		"--controllers", "deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,job-controller,serviceaccount-controller,endpointslice-controller")
	lab.StartBinary(t, "kwok", "--kubeconfig", e.kubeconfig, "--manage-all-nodes=true")
	e.create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: playedNode}})
	eventuallyWithin(t, soon, "the node to be ready", func(ctx context.Context) (bool, error) {
		node := &corev1.Node{}
		if err := e.client.Get(ctx, client.ObjectKey{Name: playedNode}, node); err != nil {
			return false, err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue, nil
			}
		}
		return false, nil
	})
}
