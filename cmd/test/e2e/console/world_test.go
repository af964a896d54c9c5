// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/test/lab"
)

const patience = 2 * time.Minute

// A world is an API server of its own, because the console shows all objects of a cluster, and a
// console of its administrator.
type world struct {
	*lab.ControlPlane
	client  client.Client
	folder  string
	binary  string
	console *lab.Process
	url     string // of the console, with a final slash
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{folder: t.TempDir(), binary: lab.Command(t, "cmd/sallyport")}
	var err error
	w.ControlPlane, err = lab.StartControlPlane(t.Context(), w.folder, lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: lab.SharedFlags})
	t.Cleanup(w.ControlPlane.Kill)
	check(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", w.Kubeconfig)
	check(t, err)
	config.QPS = -1
	definitions, err := crd.All()
	check(t, err)
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: definitions, MaxTime: patience})
	check(t, err)
	scheme := runtime.NewScheme()
	check(t, errors.Join(clientgoscheme.AddToScheme(scheme), kubeflowv1alpha1.AddToScheme(scheme), sallyportv1alpha1.AddToScheme(scheme)))
	w.client, err = client.New(config, client.Options{Scheme: scheme})
	check(t, err)
	for _, object := range exempt.Policy() {
		check(t, w.client.Create(t.Context(), object.(client.Object)))
	}

	port := strconv.Itoa(freeport.For(t))
	w.url = "http://127.0.0.1:" + port + "/"
	w.console, err = lab.Start(w.folder, lab.Program{Name: "console", Path: w.binary, OwnGroup: true, Env: []string{"GOGC="}, Args: []string{
		"console", "--kubeconfig", w.Kubeconfig, "--namespace", "team-a", "--port", port, "--no-browser",
	}})
	check(t, err)
	t.Cleanup(func() {
		w.console.Signal(syscall.SIGINT) // as Ctrl-C
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := w.console.AwaitEnd(ctx); err != nil {
			t.Errorf("the console: %v\n%s", err, w.console.Log())
		}
	})
	check(t, w.console.Await(t.Context(), patience, "the console to answer", func(ctx context.Context) error {
		_, err := lab.Get(ctx, http.DefaultClient, w.url+"style.css")
		return err
	}))
	return w
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve starts a server, and returns when the API server calls it about pods.
func (w *world) serve(t *testing.T) {
	t.Helper()
	server, err := lab.Serve(w.folder, lab.Serving{Binary: w.binary, Kubeconfig: w.Kubeconfig, ByURL: true}, lab.Set("serving.drainMin", "0s"), lab.Set("serving.drainTimeout", "500ms"),
		lab.Set("webhooks.poddefault.maxExemption", "2160h"))
	check(t, err)
	t.Cleanup(server.Kill)
	check(t, server.AwaitReady(t.Context(), patience))
	check(t, server.Await(t.Context(), patience, "pods to be injected", func(ctx context.Context) error {
		probe := pod("team-a", "probe", map[string]string{"add-gcp-secret": "true"})
		if err := w.client.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if len(probe.Spec.Volumes) == 0 {
			return errors.New("a pod has no volume")
		}
		return nil
	}))
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func pod(namespace, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/notebook:1", Env: []corev1.EnvVar{{Name: "HOME", Value: "/home/jovyan"}}}}},
	}
}

// markup is what Kubernetes allows in descriptions, annotations and values.
const markup = `"><img src=x onerror="document.title='attacked'"><script>document.title='attacked'</script>`

// secret is the value of a variable.
const secret = "hunter2"

func credentials(namespace string) *kubeflowv1alpha1.PodDefault {
	return &kubeflowv1alpha1.PodDefault{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gcp-credentials"},
		Spec: kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"add-gcp-secret": "true"}}, Desc: "Credentials of the team for Google Cloud",
			Env:          []corev1.EnvVar{{Name: "GOOGLE_APPLICATION_CREDENTIALS", Value: "/secret/gcp/" + secret}},
			Volumes:      []corev1.Volume{{Name: "gcp-credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "user-gcp-sa"}}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "gcp-credentials", MountPath: "/secret/gcp", ReadOnly: true}},
		},
	}
}

func proxy(namespace string) *kubeflowv1alpha1.PodDefault {
	return &kubeflowv1alpha1.PodDefault{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "http-proxy"},
		Spec: kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"use-proxy": "true"}}, Desc: "The proxy of the data center",
			Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy.example.com:3128"}},
		},
	}
}

// memory returns the most memory that the console has had resident, in MiB.
func (w *world) memory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.console.PID()))
	check(t, err)
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			check(t, err)
			return kib >> 10
		}
	}
	t.Fatal("/proc has no VmHWM")
	return 0
}
