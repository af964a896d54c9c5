// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/lab/kubelet"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// patience is how long anything may take that needs no more than a moment.
const patience = 2 * time.Minute

// newUser is somebody with a cluster, the files of the repository, and the tools.
type newUser struct {
	*apiServer
	kubeconfig             string
	address                string // of this machine, for endpoints
	kubelet                *kubelet.Kubelet
	helm, kubectl, command string
}

// TestAsANewUser goes the way of docs/install.md. No pods run on an API server alone: each
// of two servers is a process here, with the arguments that the chart has rendered and a
// token of the service account that it has made, so that it has those rights and no others.
// The API server calls them through the chart's Service, if this machine has an address
// that endpoints may have; else by a URL.
func TestAsANewUser(t *testing.T) {
	t.Parallel()
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithAPIServerFlag("disable-admission-plugins"),
		sallyporttest.WithAPIServerFlag("enable-aggregator-routing", "true")) // nobody answers at the address of a Service
	u := &newUser{
		apiServer: connect(t, config), kubeconfig: sallyporttest.Kubeconfig(t, config), address: hostAddress(t),
		helm: lab.Binary(t, "helm"), kubectl: filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), command: sallyport(t),
	}
	u.namespace(t, system, nil)
	u.namespace(t, "team", nil)
	u.account(t, "team")
	before := u.everything(t)
	u.kubelet = kubelet.Start(t, u.client, kubelet.At(u.address))

	chart := filepath.Join(top, "charts/sallyport")
	values := file(t, "values.yaml", image+"crds: {keep: false}\n")
	release := []string{"--namespace", system, "--kubeconfig", u.kubeconfig}
	notes := output(t, u.helm, append([]string{"install", "sallyport", chart, "--values", values}, release...)...)
	if !strings.Contains(notes, "rollout status deployment sallyport") {
		t.Errorf("the notes do not say what to do next:\n%s", notes)
	}
	u.lintsClean(t, output(t, u.helm, append([]string{"template", "sallyport", chart, "--values", values}, release...)...), "-f", "-")
	args := u.arguments(t)
	servers := []*process{u.serve(t, args), u.serve(t, args)}
	u.tryPodDefault(t, notes)
	u.doctorSaysOK(t, servers)
	u.lintsClean(t, "", "--cluster", "--kubeconfig", u.kubeconfig)

	// Another version, and back: the server is replaced without a gap, as a rollout does.
	output(t, u.helm, append([]string{"upgrade", "sallyport", chart, "--values", values, "--set", "registration.timeoutSeconds=7", "--set", "replicas=3"}, release...)...)
	upgraded := u.serve(t, u.arguments(t))
	for _, server := range servers {
		server.stop(t)
	}
	u.eventually(t, "the new timeout", func(ctx context.Context) (bool, error) { return u.timeout(ctx, 7) })
	u.injected(t)
	output(t, u.helm, append([]string{"rollback", "sallyport", "1"}, release...)...)
	if diff := cmp.Diff(args, u.arguments(t)); diff != "" {
		t.Errorf("after the rollback (-before +after):\n%s", diff)
	}
	server := u.serve(t, u.arguments(t))
	upgraded.stop(t)
	u.eventually(t, "the old timeout", func(ctx context.Context) (bool, error) { return u.timeout(ctx, 5) })
	u.injected(t)

	// As docs/install.md says.
	output(t, u.kubectl, "--kubeconfig", u.kubeconfig, "--namespace", system, "scale", "deployment", "sallyport", "--replicas", "0")
	server.stop(t) // which the controllers of Deployments do
	u.kubelet.Remove(t, u.client)
	output(t, u.command, "uninstall", "--kubeconfig", u.kubeconfig, "--service", system+"/sallyport", "--all", "--yes")
	output(t, u.helm, append([]string{"uninstall", "sallyport"}, release...)...)
	u.eventually(t, "the definition to go", func(ctx context.Context) (bool, error) {
		_, err := u.client.RESTClient().Get().AbsPath("/apis/kubeflow.org/v1alpha1").DoRaw(ctx)
		return apierrors.IsNotFound(err), nil
	})
	if diff := cmp.Diff(before, u.everything(t)); diff != "" {
		t.Errorf("left behind (-before +after):\n%s", diff)
	}
}

// account makes the service account that pods need, and no controller makes here.
func (u *newUser) account(t *testing.T, namespace string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := u.client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// template is that of the Deployment as it is.
func (u *newUser) template(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	deployment, err := u.client.AppsV1().Deployments(system).Get(t.Context(), "sallyport", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if name := deployment.Spec.Template.Spec.ServiceAccountName; name != "sallyport" {
		t.Fatalf("the pods have the account %q", name)
	}
	return deployment.Spec.Template
}

func (u *newUser) arguments(t *testing.T) []string {
	t.Helper()
	return u.template(t).Spec.Containers[0].Args
}

// doctorSaysOK needs no flags of a user, but for the addresses of metrics: both replicas
// are at one address here.
func (u *newUser) doctorSaysOK(t *testing.T, servers []*process) {
	t.Helper()
	args := []string{"doctor", "--output", "json", "--kubeconfig", u.kubeconfig}
	for _, server := range servers {
		args = append(args, "--replica", server.Metrics)
	}
	if u.address == "" {
		args = append(args, "--authority-secret", system+"/sallyport-authority", "--service-account", system+"/sallyport")
	}
	var printed struct {
		Checks []struct{ Check, Status, Text, Remedy string }
	}
	text := output(t, u.command, args...)
	if err := json.Unmarshal([]byte(text), &printed); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range printed.Checks {
		seen[c.Check] = true
		if c.Status != "ok" && c.Check != "static-manifests" { // there are none
			t.Errorf("doctor says %s of %s: %s (%s)", c.Status, c.Check, c.Text, c.Remedy)
		}
	}
	for _, check := range []string{"api-server", "configurations", "guard", "revisions", "service", "reachability", "certificate", "authority", "replicas", "leader", "rights", "calls", "clock"} {
		if !seen[check] {
			t.Errorf("doctor says nothing of %s:\n%s", check, text)
		}
	}
	if u.address == "" {
		return
	}
	forwarded := 0
	for _, server := range servers {
		forwarded += u.kubelet.Forwarded(system + "/" + server.pod)
	}
	if forwarded == 0 {
		t.Error("doctor has seen a certificate, and not through a pod")
	}
}

// lintsClean lints what is on stdin, or in the cluster.
func (u *newUser) lintsClean(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), u.command, append([]string{"lint"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "nothing found in ") {
		t.Errorf("lint %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// tryPodDefault does what the notes of the chart say, but for the namespace.
func (u *newUser) tryPodDefault(t *testing.T, notes string) {
	t.Helper()
	_, podDefault, ok := strings.Cut(notes, "<<'EOT'\n")
	podDefault, _, ok2 := strings.Cut(podDefault, "  EOT\n")
	if !ok || !ok2 {
		t.Fatalf("the notes have no PodDefault:\n%s", notes)
	}
	podDefault = strings.ReplaceAll("\n"+podDefault, "\n  ", "\n")
	output(t, u.kubectl, "--kubeconfig", u.kubeconfig, "--namespace", "team", "apply", "-f", file(t, "poddefault.yaml", podDefault))
	u.injected(t)
}

// injected creates a pod, sees that it has what the PodDefault says, and deletes it.
func (u *newUser) injected(t *testing.T) {
	t.Helper()
	pods := u.client.CoreV1().Pods("team")
	u.eventually(t, "a pod to be injected", func(ctx context.Context) (bool, error) {
		pod, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "hello", Labels: map[string]string{"hello": "true"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "hello", Image: "busybox"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		now := int64(0)
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return false, err
		}
		return slices.Contains(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "GREETING", Value: "hello"}), nil
	})
}

// timeout tells whether the API server waits that long.
func (u *newUser) timeout(ctx context.Context, seconds int32) (bool, error) {
	configuration, err := u.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "sallyport", metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	got := configuration.Webhooks[0].TimeoutSeconds
	if owners := configuration.OwnerReferences; len(owners) != 1 || owners[0].Kind != "ClusterRole" {
		return false, fmt.Errorf("owners are %+v", owners)
	}
	return got != nil && *got == seconds, nil
}

// everything returns kind, namespace and name of every object, but for what the API
// server keeps for itself.
func (u *newUser) everything(t *testing.T) []string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(u.config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Name == "events" || resource.Name == "apiservices" {
				continue
			}
			objects, err := u.objects.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", resource.Name, err)
			}
			for _, object := range objects.Items {
				if !strings.HasPrefix(object.GetName(), "apiserver-") { // its identity, renewed
					out = append(out, fmt.Sprintf("%s %s/%s", resource.Name, object.GetNamespace(), object.GetName()))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// A process is one sallyport serve, and a pod of the Deployment that it stands for.
type process struct {
	*lab.Server
	pod   string
	leave func(*testing.T) // what takes the pod away
}

// mounted puts the file of the ConfigMap that the Deployment mounts in the place of its path in the container.
func (u *newUser) mounted(t *testing.T, args []string) []string {
	t.Helper()
	i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--config=") })
	if i < 0 {
		return args
	}
	for _, volume := range u.template(t).Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		configMap, err := u.client.CoreV1().ConfigMaps(system).Get(t.Context(), volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := configMap.Data[filepath.Base(args[i])]; ok {
			args[i] = "--config=" + file(t, "sallyport.yaml", data)
			return args
		}
	}
	t.Fatalf("%s: no volume of the Deployment holds it", args[i])
	return nil
}

// serve starts a server as its pod would, waits until it is ready, and lets the Service
// know.
func (u *newUser) serve(t *testing.T, args []string) *process {
	t.Helper()
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return strings.HasPrefix(arg, "--secure-port=") || u.address == "" && strings.HasPrefix(arg, "--service=")
	})
	port := freeport.For(t)
	more := []string{lab.Set("serving.drainMin", "0s"), lab.Set("serving.drainTimeout", "5s")}
	if u.address == "" {
		more = append(more, "--authority-secret", system+"/sallyport-authority")
	}
	server, err := lab.Serve(t.TempDir(), lab.Serving{
		Base: u.mounted(t, args), Binary: u.command, Kubeconfig: u.asServer(t), Address: u.address, Port: port, ByURL: u.address == "",
	}, more...)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Server: server, pod: fmt.Sprintf("sallyport-%d", port), leave: func(*testing.T) {}}
	t.Cleanup(func() {
		if t.Failed() {
			p.leave = func(*testing.T) {} // there may be no API server any more
		}
		p.stop(t)
		if t.Failed() {
			t.Logf("log of a server:\n%s", p.Log())
		}
	})
	if err := p.AwaitReady(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	if u.address != "" {
		u.join(t, p, int32(port))
	}
	return p
}

// join does what the controllers of a cluster and a kubelet do: there is a pod of the
// Deployment, it runs, and it is an endpoint of the Service that selects it.
func (u *newUser) join(t *testing.T, p *process, port int32) {
	t.Helper()
	template := u.template(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.pod, Labels: template.Labels, Annotations: template.Annotations}, Spec: template.Spec}
	pod.Spec.NodeName = u.kubelet.Node
	pods := u.client.CoreV1().Pods(system)
	pod, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, u.address, []corev1.PodIP{{IP: u.address}}
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	service, err := u.client.CoreV1().Services(system).Get(t.Context(), "sallyport", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
		t.Fatalf("the Service selects %v, and pods have %v", service.Spec.Selector, pod.Labels)
	}
	endpointSlices := u.client.DiscoveryV1().EndpointSlices(system)
	if _, err := endpointSlices.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: p.pod, Labels: map[string]string{discoveryv1.LabelServiceName: "sallyport"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &service.Spec.Ports[0].Name, Port: &port, Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{u.address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: system, Name: pod.Name, UID: pod.UID},
		}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u.writeEndpoints(t)
	p.leave = func(t *testing.T) {
		t.Helper()
		now := int64(0)
		if err := errors.Join(
			endpointSlices.Delete(t.Context(), p.pod, metav1.DeleteOptions{}),
			pods.Delete(t.Context(), p.pod, metav1.DeleteOptions{GracePeriodSeconds: &now}),
		); err != nil {
			t.Error(err)
		}
		u.writeEndpoints(t)
	}
}

// writeEndpoints writes what a controller writes beside the EndpointSlices of the Service.
func (u *newUser) writeEndpoints(t *testing.T) {
	t.Helper()
	slices, err := u.client.DiscoveryV1().EndpointSlices(system).List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=sallyport"})
	if err != nil {
		t.Fatal(err)
	}
	endpoints := lab.EndpointsOf(t, slices.Items...)
	if endpoints == nil {
		return
	}
	endpoints.Name = "sallyport" // also if there are none
	all := u.client.CoreV1().Endpoints(system)
	if _, err = all.Update(t.Context(), endpoints, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = all.Create(t.Context(), endpoints, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// hostAddress is an address of this machine that endpoints may have, which is no loopback
// address; empty if it has none.
func hostAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	return ""
}

// asServer is a kubeconfig with a token of the server's account.
func (u *newUser) asServer(t *testing.T) string {
	t.Helper()
	token, err := u.client.CoreV1().ServiceAccounts(system).CreateToken(t.Context(), "sallyport", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(u.config)
	config.BearerToken = token.Status.Token
	return sallyporttest.Kubeconfig(t, config)
}

// stop ends the process as the kubelet does. It may have ended.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.HasEnded() {
		return
	}
	p.leave(t)
	if err := p.Stop(time.Minute); err != nil {
		t.Errorf("%v\n%s", err, p.Log())
	}
}

func (u *newUser) eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	lab.Eventually(t.Context(), t, patience, what, condition)
}
