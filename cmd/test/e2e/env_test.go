// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// How often tests do what they repeat. `make nightly` wants it twenty-five times as often.
var times = flag.Int("times", 1, "how many times as often tests do what they repeat")

// env is one API server with PodDefaults installed, and the command under test.
type env struct {
	binary     string
	config     *rest.Config
	kubeconfig string
	client     client.Client
	traces     *spans // of TestSallyport's API server
}

// patience is how long anything may take that needs no more than a moment: tests
// end when it has happened, and fail when it has not after this.
const patience = 2 * time.Minute

// newEnv starts an API server that has our definitions.
func newEnv(t *testing.T, options ...sallyporttest.APIServerOption) *env {
	t.Helper()
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	e := &env{binary: lab.Command(t, "cmd/sallyport")}
	e.config = sallyporttest.StartAPIServer(t, append(options, sallyporttest.WithCRDs(crds...))...)
	e.kubeconfig = sallyporttest.Kubeconfig(t, e.config)
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, kubeflowv1alpha1.AddToScheme, sallyportv1alpha1.AddToScheme, openreports.Install} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	if e.client, err = client.New(e.config, client.Options{Scheme: types}); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestSallyport runs everything against one API server. The subtests share it, and
// each has namespaces and webhook configurations of its own. Those that
// wait longest run beside each other, after the others.
func TestSallyport(t *testing.T) {
	t.Parallel()
	// Without a list of disabled plugins ServiceAccount is on, as in any cluster:
	// it mounts the token that automountServiceAccountToken is about.
	traces := collect(t)
	e := newEnv(t, sallyporttest.WithAPIServerFlag("disable-admission-plugins"), traces.flag(t))
	e.traces = traces

	for _, test := range []struct {
		name string
		run  func(*testing.T, *env)
	}{
		{"every field of a PodDefault arrives in the stored pod", testFields},
		{"every field beyond Kubeflow's arrives, and passes a second time", testNewFields},
		{"ClusterPodDefaults reach new namespaces and excluded pods", testClusterPodDefaults},
		{"a PodDefault counts at once if consistency is wanted", testConsistent},
		{"Secrets that PodDefaults select by labels count at once, once the server may read them", testConnections},
		{"a pod uses the PodDefaults that its ServiceAccount may", testUsage},
		{"commands ask the API server what it refuses", testAskingTheServer},
		{"review asks the API server whether objects that exist may change", testReviewedUpdates},
		{"refusals and conflicts are reported, and reports are uninstalled", testReports},
		{"a pod that was injected and is sent again comes out the same", testSecondPass},
		{"changes and deletions of PodDefaults take effect", testChanges},
		{"a conflict denies the pod with a message that tells no values", testConflict},
		{"who authored what the API server would refuse is told", testForeseen},
		{"objects that can never work block nothing", testInvalidObjects},
		{"every order of AdmissionReview versions works", testReviewVersions},
		{"a webhook that is down refuses only the pods that it is for", testWebhookDown},
		{"bad input is refused and the server goes on", testBadInput},
		{"a call is in the trace of its request", testTraces},
		{"reviews are recorded, read by whom the API server allows, and replayed", testRecording},
		{"an API server that is away leaves the last cache in use", testAPIServerAway},
		{"the rights that manifests prints are enough", testManifests},
		{"a restarted server keeps its authority", testAuthority},
		{"what a server registered is uninstalled, once nobody leads", testUninstall},
		{"configurations go with their owner", testOwner},
		{"configurations of others lead to paths of their choice, without registration and controllers", testGivenPaths},
		{"a server that loses the lease goes on serving", testLostLease},
		{"private paths follow a rotation without a call that fails", testPrivatePaths},
		{"whatever is done to the Secret of the authority stops no call", testSpoiledAuthority},
		{"an index that is edited by hand is put right, and lets nothing pass", testSpoiledIndex},
		{"a server whose rights are withdrawn goes on, and says so", testWithdrawnRights},
		{"a definition of PodDefaults that is deleted may come back", testWithdrawnDefinition},
		{"two servers that want one configuration to be different still inject", testTwoConfigurations},
		{"a server with few file descriptors, little memory and no disk goes on", testPoorServer},
		{"a leader that is cut off is followed by another, and comes back", testPartition},
		{"metrics are for whom the API server allows, and probes for all", testMetricsReaders},
		{"commands for certificates say what is wrong", testCertificatesErrors},
		{"imagepull sets what can be set and refuses the rest", testImagePull},
		{"servicetype refuses what is new and leaves what was there", testServiceType},
		{"workloads whose pods would be refused are warned of, and nothing else", testPodTemplate},
		{"projectlimit holds for two hundred namespaces at once", testProjectLimit},
		{"a configuration that changes loses no call", testReload},
		{"sidecars of the recipes are found by their services", testSidecars},
		{"while every server is down only pods that would be injected are refused", testBackstop},
		{"a tenant who fills the index takes nothing from ClusterPodDefaults", testFullIndex},
		{"policies inject what the webhook does", testPolicyMode},
		{"hundreds of PodDefaults are one namespace's", testManyPodDefaults},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, e) })
	}
}

// namespace makes a namespace with the service account that pods need.
func (e *env) namespace(t *testing.T, name string) string {
	t.Helper()
	e.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"e2e": name}}})
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
	return name
}

func (e *env) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := e.client.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

// createInCluster creates a cluster-scoped object that is checked by the servers of all tests: one that is just
// ending no longer answers, and its configuration is not removed yet.
func (e *env) createInCluster(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("creation of %T %s", object, object.GetName()), func(ctx context.Context) (bool, error) {
		err := e.client.Create(ctx, object)
		if apierrors.IsInternalError(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// stored reads a pod back as the API server has it.
func (e *env) stored(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	out := &corev1.Pod{}
	if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(pod), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// createSoon creates a PodDefault and waits until the server has seen it: until a
// pod made like probe, in a dry run, carries its mark.
func (e *env) createSoon(t *testing.T, pd *kubeflowv1alpha1.PodDefault, probe *corev1.Pod, mark string) {
	t.Helper()
	e.create(t, pd)
	eventually(t, "the PodDefault "+pd.Name+" to be applied", func(ctx context.Context) (bool, error) {
		pod := probe.DeepCopy()
		if err := e.client.Create(ctx, pod, client.DryRunAll); err != nil {
			return false, err
		}
		_, ok := pod.Annotations[mark]
		return ok, nil
	})
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	eventuallyIn(t.Context(), t, what, condition)
}

func eventuallyIn(ctx context.Context, t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	lab.Eventually(ctx, t, patience, what, condition)
}

// status returns the API status of an error.
func status(t *testing.T, err error) metav1.Status {
	t.Helper()
	apiStatus, ok := err.(apierrors.APIStatus)
	if !ok {
		t.Fatalf("expected a status of the API, got %v", err)
	}
	return apiStatus.Status()
}
