// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/imagepull"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/projectlimit"
	"github.com/sallyport-io/sallyport/test/lab"
)

// configuration writes a SallyportConfiguration with these webhooks to a file, as a
// whole.
func configuration(t *testing.T, path, webhooks string) {
	t.Helper()
	text := "apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\nwebhooks:\n" + webhooks
	if err := os.WriteFile(path+".next", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".next", path); err != nil {
		t.Fatal(err)
	}
}

// wantForbidden asks for a refusal that says all of the texts.
func wantForbidden(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("want a refusal that says %q, got %v", texts, err)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the refusal does not say %q: %v", text, err)
		}
	}
}

func testImagePull(t *testing.T, e *env) {
	name := e.namespace(t, "imagepull")
	path := filepath.Join(t.TempDir(), "sallyport.yaml")
	configuration(t, path, "- {name: imagepull, settings: {forbidLatest: true}}\n")
	old := simplePod(name, "old")
	old.Spec.Containers[0].Image, old.Spec.Containers[0].ImagePullPolicy = "app:1", corev1.PullIfNotPresent
	e.create(t, old) // before there is a webhook
	e.awaitImageCheck(t, e.serve(t, name, "--config", path), name)

	pod := simplePod(name, "new")
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = "app:1", corev1.PullIfNotPresent
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:1"}}
	volumes := lab.KubernetesMinor(t) >= 35 // before, the API server drops images of volumes by default
	if volumes {
		pod.Spec.Volumes = []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "model:1"}}}}
	}
	e.create(t, pod)
	got := e.stored(t, pod)
	if got.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways || got.Spec.InitContainers[0].ImagePullPolicy != corev1.PullAlways ||
		volumes && got.Spec.Volumes[0].Image.PullPolicy != corev1.PullAlways {
		t.Errorf("the pull policies are not all Always: %+v", got.Spec)
	}
	latest := simplePod(name, "latest")
	wantForbidden(t, e.client.Create(t.Context(), latest), "spec.containers[0] (main)", "tag latest")

	got.Spec.Containers[0].Image = "app:2"
	if err := e.client.Update(t.Context(), got); err != nil {
		t.Errorf("another version in a pod: %v", err)
	}
	got.Spec.Containers[0].Image = "app"
	wantForbidden(t, e.client.Update(t.Context(), got), "tag latest")
	old = e.stored(t, old)
	old.Labels["touched"] = "true"
	if err := e.client.Update(t.Context(), old); err != nil {
		t.Errorf("a label of a pod that is older than the webhook: %v", err)
	}
	old.Spec.Containers[0].Image = "app:2"
	wantForbidden(t, e.client.Update(t.Context(), old), "create the pod anew")

	got = e.stored(t, pod)
	got.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debug", Image: "debug:1", ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}}}
	if err := e.client.SubResource("ephemeralcontainers").Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if got = e.stored(t, pod); len(got.Spec.EphemeralContainers) != 1 || got.Spec.EphemeralContainers[0].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("ephemeral containers are %+v", got.Spec.EphemeralContainers)
	}
	got.Spec.EphemeralContainers = append(got.Spec.EphemeralContainers, *got.Spec.EphemeralContainers[0].DeepCopy())
	got.Spec.EphemeralContainers[1].Name, got.Spec.EphemeralContainers[1].Image = "second", "debug"
	wantForbidden(t, e.client.SubResource("ephemeralcontainers").Update(t.Context(), got), "spec.ephemeralContainers[1] (second)", "tag latest")
}

// awaitImageCheck waits until the API server calls the validating webhook, too: the harness waits
// for the configuration of mutating ones.
func (e *env) awaitImageCheck(t *testing.T, s *server, namespace string) {
	t.Helper()
	eventually(t, "images to be checked", func(ctx context.Context) (bool, error) {
		probe := simplePod(namespace, "probe")
		probe.Spec.Containers[0].Image = "app:1"
		err := e.client.Create(ctx, probe, client.DryRunAll)
		return s.metric(t, `sallyport_admission_reviews_total{outcome="allowed",webhook="`+imagepull.ValidatingName+`"}`) != "0", err
	})
}

func testServiceType(t *testing.T, e *env) {
	name := e.namespace(t, "servicetype")
	service := func(name string, kind corev1.ServiceType) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "servicetype", Name: name},
			Spec:       corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	old := service("old", corev1.ServiceTypeNodePort)
	e.create(t, old)
	// imagepull is there for its mutating webhook, which the harness waits for.
	e.serve(t, name, "--webhooks", "imagepull,servicetype")
	eventually(t, "node ports to be refused", func(ctx context.Context) (bool, error) {
		err := e.client.Create(ctx, service("probe", corev1.ServiceTypeNodePort), client.DryRunAll)
		return apierrors.IsForbidden(err), nil
	})
	wantForbidden(t, e.client.Create(t.Context(), service("lb", corev1.ServiceTypeLoadBalancer)), "service servicetype/lb", "spec.type LoadBalancer")
	plain := service("plain", corev1.ServiceTypeClusterIP)
	e.create(t, plain)
	plain.Spec.ExternalIPs = []string{"198.51.100.7"}
	err := e.client.Update(t.Context(), plain)
	wantForbidden(t, err, "spec.externalIPs")
	if strings.Contains(fmt.Sprint(err), "198.51") {
		t.Errorf("the refusal tells the address: %v", err)
	}
	old.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	if err := e.client.Update(t.Context(), old); err != nil {
		t.Errorf("another field of one that was there before: %v", err)
	}
	if err := e.client.Delete(t.Context(), old); err != nil {
		t.Error(err)
	}
}

// as is a client of a user who may do everything with namespaces and project
// requests.
func (e *env) as(t *testing.T, user string) client.Client {
	t.Helper()
	e.create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + user},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"", "project.openshift.io"}, Resources: []string{"namespaces", "namespaces/status", "projectrequests"}, Verbs: []string{"*"},
		}},
	})
	e.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "e2e-" + user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	config := rest.CopyConfig(e.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func testProjectLimit(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "projectlimit")
	installProjectRequests(t, e)
	path := filepath.Join(t.TempDir(), "sallyport.yaml")
	configuration(t, path, "- {name: projectlimit, settings: {limit: 3}}\n")
	e.serve(t, name, "--config", path)
	alice, bob := e.as(t, "alice"), e.as(t, "bob")
	namespace := func(generate string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: generate, Labels: map[string]string{"e2e": name}}}
	}
	eventually(t, "the limit to hold", func(ctx context.Context) (bool, error) {
		stamped := namespace("probe-")
		err := bob.Create(ctx, stamped, client.DryRunAll)
		return err == nil && stamped.Annotations[projectlimit.Annotation] == "bob", err
	})

	var mu sync.Mutex
	var created []*corev1.Namespace
	var wait sync.WaitGroup
	for range 200 {
		wait.Go(func() {
			n := namespace("alice-")
			err := alice.Create(t.Context(), n)
			if err == nil {
				mu.Lock()
				created = append(created, n)
				mu.Unlock()
			} else if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "at most 3 projects") {
				t.Errorf("creating a namespace: %v", err)
			}
		})
	}
	wait.Wait()
	if len(created) != 3 {
		t.Fatalf("%d namespaces were created, the limit is 3", len(created))
	}
	first := created[0]
	if first.Annotations[projectlimit.Annotation] != "alice" {
		t.Errorf("the annotations are %v", first.Annotations)
	}
	for _, change := range []func(*corev1.Namespace){
		func(n *corev1.Namespace) { n.Annotations[projectlimit.Annotation] = "bob" },
		func(n *corev1.Namespace) { n.Annotations = nil },
		func(n *corev1.Namespace) { n.Annotations[projectlimit.OpenShiftAnnotation] = "bob" },
	} {
		changed := first.DeepCopy()
		change(changed)
		wantForbidden(t, alice.Update(t.Context(), changed), "cannot be changed")
		wantForbidden(t, alice.Status().Update(t.Context(), changed), "cannot be changed")
	}
	changed := first.DeepCopy()
	changed.Annotations["example.com/note"] = "x"
	if err := alice.Update(t.Context(), changed); err != nil {
		t.Errorf("another annotation: %v", err)
	}
	if err := e.client.Create(t.Context(), namespace("admin-")); err != nil {
		t.Errorf("an exempt account: %v", err)
	}
	testProjectRequests(t, alice, bob)
	// A namespace that is being deleted does not count.
	if err := alice.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "room for another namespace", func(ctx context.Context) (bool, error) {
		err := alice.Create(ctx, namespace("alice-"), client.DryRunAll)
		return err == nil, err
	})
}

// installProjectRequests makes the API server know OpenShift's project requests; they
// are served by an API server of their own there.
func installProjectRequests(t *testing.T, e *env) {
	t.Helper()
	anything := true
	_, err := envtest.InstallCRDs(e.config, envtest.CRDInstallOptions{MaxTime: patience, CRDs: []*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: "projectrequests.project.openshift.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "project.openshift.io", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "projectrequests", Singular: "projectrequest", Kind: "ProjectRequest", ListKind: "ProjectRequestList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}},
			}},
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
}

func testProjectRequests(t *testing.T, full, empty client.Client) {
	t.Helper()
	request := func(name string) client.Object {
		r := &unstructured.Unstructured{}
		r.SetAPIVersion("project.openshift.io/v1")
		r.SetKind("ProjectRequest")
		r.SetName(name)
		return r
	}
	wantForbidden(t, full.Create(t.Context(), request("one-too-many")), "project one-too-many", "at most 3 projects")
	admitted := request("first")
	if err := empty.Create(t.Context(), admitted); err != nil {
		t.Errorf("a project request below the limit: %v", err)
	}
	if accessor, err := apimeta.Accessor(admitted); err != nil || len(accessor.GetAnnotations()) > 0 {
		t.Errorf("a project request is stamped: %v", accessor.GetAnnotations())
	}
}

// testReload changes the configuration again and again while pods are created.
func testReload(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "reload")
	path := filepath.Join(t.TempDir(), "sallyport.yaml")
	const images = "- {name: imagepull}\n"
	configuration(t, path, images)
	s := e.serve(t, name, "--config", path)

	var stop atomic.Bool
	var wait sync.WaitGroup
	var pods atomic.Int64
	for worker := range 4 {
		wait.Go(func() {
			for i := 0; !stop.Load(); i++ {
				pod := simplePod(name, fmt.Sprintf("p-%d-%d", worker, i))
				pod.Spec.Containers[0].Image = "app:1"
				if err := e.client.Create(t.Context(), pod, client.DryRunAll); err != nil {
					t.Errorf("creating a pod: %v", err)
					return
				}
				pods.Add(1)
				// A new configuration is at work at once, or after what it reads has been listed: some
				// hundred calls a second are there in either case.
				lab.Sleep(t.Context(), 30*time.Millisecond)
			}
		})
	}
	defer wait.Wait()
	defer stop.Store(true)
	reloads := func(result, count string) {
		t.Helper()
		eventually(t, "reload "+count+" with "+result, func(context.Context) (bool, error) {
			return s.metric(t, `sallyport_config_reloads_total{result="`+result+`"}`) == count, nil
		})
	}
	e.awaitImageCheck(t, s, name)
	configuration(t, path, "- {name: imagepull, settings: {forbidLatest: true}}\n")
	reloads("success", "1")
	latest := simplePod(name, "latest")
	wantForbidden(t, e.client.Create(t.Context(), latest, client.DryRunAll), "tag latest")
	configuration(t, path, "- {name: imagepull, settings: {forbidLatest: 1}}\n")
	reloads("failure", "1")
	wantForbidden(t, e.client.Create(t.Context(), latest, client.DryRunAll), "tag latest")
	// Another webhook, which reads from the cluster first.
	configuration(t, path, images+"- {name: poddefault, settings: {guard: Fail}}\n")
	reloads("success", "2")
	e.createSoon(t, envPodDefault(name, "late"), simplePod(name, "probe"), meta.Mark("late"))
	if pods.Load() == 0 {
		t.Error("no pod was created meanwhile")
	}
}

// testSidecars applies the recipes of examples/sidecars, and looks whether each
// Service finds the port that its PodDefault adds.
func testSidecars(t *testing.T, e *env) {
	name := e.namespace(t, "sidecars")
	e.serve(t, name)
	folders, err := filepath.Glob("../../../examples/sidecars/*/poddefault.yaml")
	if err != nil || len(folders) < 2 {
		t.Fatalf("recipes: %v, %v", folders, err)
	}
	for _, file := range folders {
		var pd kubeflowv1alpha1.PodDefault
		var service corev1.Service
		for path, into := range map[string]client.Object{file: &pd, filepath.Join(filepath.Dir(file), "service.yaml"): &service} {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(text, into); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			into.SetNamespace(name)
		}
		e.create(t, &service)
		pod := simplePod(name, "app-"+pd.Name)
		pod.Labels = pd.Spec.Selector.MatchLabels
		probe := pod.DeepCopy()
		probe.Name = "probe-" + pd.Name
		e.createSoon(t, &pd, probe, meta.Mark(pd.Name))
		e.create(t, pod)
		got := e.stored(t, pod)
		for key, value := range service.Spec.Selector {
			if got.Labels[key] != value {
				t.Errorf("%s: the Service does not select the pod", file)
			}
		}
		target := service.Spec.Ports[0].TargetPort.StrVal
		if !slices.ContainsFunc(got.Spec.Containers, func(c corev1.Container) bool {
			return c.Name == pd.Spec.Sidecars[0].Name && slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == target })
		}) {
			t.Errorf("%s: no sidecar has the port %s of the Service", file, target)
		}
	}
}
