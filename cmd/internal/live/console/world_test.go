// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/test/lab"
)

// A world is a cluster of its own, because the console shows all objects of a cluster.
type world struct {
	*lab.ControlPlane
	config *rest.Config // with all rights
	client client.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cp, err := lab.StartControlPlane(t.Context(), t.TempDir(), lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: lab.SharedFlags, Users: []lab.User{{Name: "console"}}})
	t.Cleanup(cp.Kill)
	w := &world{ControlPlane: cp}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	w.config = readConfig(t, cp.Kubeconfig)
	definitions, err := crd.All()
	check(err)
	_, err = envtest.InstallCRDs(w.config, envtest.CRDInstallOptions{CRDs: definitions, MaxTime: time.Minute})
	check(err)
	scheme := runtime.NewScheme()
	check(errors.Join(clientgoscheme.AddToScheme(scheme), kubeflowv1alpha1.AddToScheme(scheme), sallyportv1alpha1.AddToScheme(scheme)))
	w.client, err = client.New(w.config, client.Options{Scheme: scheme})
	check(err)
	return w
}

func readConfig(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// configOf authenticates as a user.
func (w *world) configOf(t *testing.T, user string) *rest.Config {
	t.Helper()
	kubeconfig, err := w.KubeconfigOf(user)
	if err != nil {
		t.Fatal(err)
	}
	return readConfig(t, kubeconfig)
}

// options are those of a local console of a user.
func (w *world) options(user string) *Options {
	o := &Options{Config: rest.CopyConfig(w.config), Version: "v0", blank: time.Minute, Dataset: dataset.DefaultSettings(), Doctor: doctor.Options{
		Program: "sallyport", Registration: registration.Settings{Name: "sallyport"}, MetricsPort: doctor.DefaultMetricsPort,
	}, Webhooks: func(source match.Source) ([]admission.Webhook, error) {
		webhook, err := poddefault.New(source, poddefault.DefaultSettings())
		return []admission.Webhook{webhook}, err
	}}
	o.Config.Impersonate.UserName = user
	return o
}

func (w *world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func newPod(namespace, name string, labels, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
	}
}

// page requests a page of a local console of a user, and fails unless it has the status.
func (w *world) page(t *testing.T, user, target string, want int) string {
	t.Helper()
	response, body := visitPage(t, w.options(user), localRequest(http.MethodGet, target, nil))
	if response.StatusCode != want {
		t.Fatalf("%s as %q: status %d, want %d:\n%s", target, user, response.StatusCode, want, body)
	}
	return body
}

// has fails unless a page has all texts, and none of those after a "!".
func has(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if not, negated := strings.CutPrefix(text, "!"); negated && strings.Contains(body, not) {
			t.Errorf("%q is in\n%s", not, body)
		} else if !negated && !strings.Contains(body, text) {
			t.Errorf("no %q in\n%s", text, body)
		}
	}
}

// grant allows a user to get and list resources in a namespace, and waits until the API server knows.
func (w *world) grant(t *testing.T, user, namespace string, groupResources ...string) {
	t.Helper()
	role, binding := roleFor(user, namespace, groupResources)
	w.create(t, role, binding)
	resource, group, _ := strings.Cut(groupResources[0], ".")
	w.await(t, user, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Group: group, Resource: resource})
}

// await waits until a user may do something.
func (w *world) await(t *testing.T, user string, what authorizationv1.ResourceAttributes) {
	t.Helper()
	lab.Eventually(t.Context(), t, time.Minute, user+" may "+what.Verb+" "+what.Resource, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &what}}
		err := w.client.Create(ctx, review)
		return review.Status.Allowed, err
	})
}
