// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/lab/kubelet"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/golden"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestLook runs the commands that look at a cluster against one API server of their
// own: what they say depends on all webhooks there are.
func TestLook(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *env)
	}{
		{"lint finds nothing wrong in what serve registers", testLintOfServe},
		{"doctor says ok of a server that works, and what to do of one that does not", testDoctor},
		{"doctor says whether a stranger may call", testDoctorCallers},
		{"doctor looks through the Service", testDoctorService},
		{"doctor sees a certificate through a pod", testDoctorForwards},
		{"lint looks at a cluster and says what it may not see", testLintOfCluster},
		{"lint refuses what the API server refuses, and knows its resources", testLintAgrees},
		{"chain names who is called, in the order of the calls", testChain},
		{"top and doctor name a webhook that makes requests slow", testTop},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, e) })
	}
}

// look runs sallyport, and returns its exit status and output.
func (e *env) look(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), e.binary, args...)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), messages.String()
}

// userWith is a kubeconfig of a user who may do what the rules say, and no more.
func (e *env) userWith(t *testing.T, user string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules})
	e.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	})
	config := rest.CopyConfig(e.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return sallyporttest.Kubeconfig(t, config)
}

func testLintOfServe(t *testing.T, e *env) {
	e.exemptPolicy(t)
	name := e.namespace(t, "lint-serve")
	e.serve(t, name, "--webhooks", "*", "--authority-secret", name+"/authority")
	status, stdout, stderr := e.look(t, "lint", "--cluster", "--kubeconfig", e.kubeconfig)
	if status != 0 || !strings.Contains(stdout, "nothing found") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	for _, line := range strings.Split(stdout, "\n") {
		if strings.HasPrefix(line, "not checked: ca-bundle") {
			t.Errorf("the certificate of a server beside the API server was not looked at: %s", line)
		}
	}
	wedge := e.serve(t, e.namespace(t, "lint-wedge"), "--namespace-selector", "", lab.Set("registration", "{excludedNamespaces: [], allowWedge: this is a test}"))
	status, stdout, stderr = e.look(t, "lint", "--cluster", "--kubeconfig", e.kubeconfig)
	if status != 0 || !strings.Contains(stdout, "this is a test") {
		t.Errorf("with a reason, status %d\n%s%s", status, stdout, stderr)
	}
	wedge.stop(t)
	e.deleteConfiguration(t, "lint-wedge") // it is for everybody's pods
}

// doctorLines are what doctor says of each check. If calls were refused before, it does not
// watch for 10 s whether more are, unless the arguments say so.
func (e *env) doctorLines(t *testing.T, status int, args ...string) map[string][]string {
	t.Helper()
	got, stdout, stderr := e.look(t, append([]string{"doctor", "-o", "json", "--window=0s"}, args...)...)
	if got != status {
		t.Errorf("status %d, want %d\n%s%s", got, status, stdout, stderr)
	}
	return doctorOf(t, stdout)
}

// doctorOf reads what doctor prints as JSON.
func doctorOf(t *testing.T, stdout string) map[string][]string {
	t.Helper()
	var printed struct {
		Checks []struct{ Check, Status, Text string }
	}
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	out := map[string][]string{}
	for _, c := range printed.Checks {
		out[c.Check] = append(out[c.Check], c.Status+": "+c.Text)
	}
	return out
}

func expectLine(t *testing.T, lines map[string][]string, check, want string) {
	t.Helper()
	if !slices.ContainsFunc(lines[check], func(line string) bool { return strings.Contains(line, want) }) {
		t.Errorf("%s says %q, and nothing of %q", check, lines[check], want)
	}
}

func testDoctor(t *testing.T, e *env) {
	name := e.namespace(t, "doctor")
	secret := name + "/authority"
	s := e.serve(t, name, "--authority-secret", secret)
	args := []string{
		"--kubeconfig", e.kubeconfig, "--configuration-name", name, "--authority-secret", secret, "--replica", s.Metrics,
		"--service-account", name + "/sallyport",
	}

	// The rights are those that manifests prints.
	status, printed, stderr := e.look(t, "manifests", "--part", "rbac", "--service", name+"/sallyport", "--configuration-name", name, "--authority-secret", secret)
	if status != 0 {
		t.Fatal(stderr)
	}
	lines := e.doctorLines(t, 2, args...)
	expectLine(t, lines, "rights", "fix: system:serviceaccount:doctor:sallyport cannot create events, create leases")
	for _, document := range strings.Split(printed, "---\n") {
		object := &metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal([]byte(document), object); err != nil {
			t.Fatal(err)
		}
		typed, err := scheme.Scheme.New(object.GroupVersionKind())
		if err == nil {
			err = yaml.Unmarshal([]byte(document), typed)
		}
		if err != nil {
			t.Fatal(err)
		}
		e.create(t, typed.(client.Object))
	}
	eventually(t, "RBAC to know of the roles", func(ctx context.Context) (bool, error) {
		cmd := exec.CommandContext(ctx, e.binary, append([]string{"doctor", "--window=0s"}, args...)...)
		out, err := cmd.Output()
		if bytes.Contains(out, []byte("ok    rights")) {
			return true, nil
		}
		return false, fmt.Errorf("%w: %s", err, out)
	})

	lines = e.doctorLines(t, 0, args...)
	for check, want := range map[string]string{
		"api-server":       "ok: Kubernetes v1.",
		"clock":            "ok: the API server's clock and the local one agree",
		"configurations":   "ok: doctor registers poddefault.sallyport.io",
		"revisions":        "revisions match their names",
		"service":          "ok: the server is reached by a URL",
		"reachability":     "ok: it answers at 127.0.0.1:",
		"certificate":      "ok: every caBundle verifies the serving certificate",
		"authority":        "ok: every caBundle holds it",
		"replicas":         "ok: " + s.Metrics + " agree",
		"leader":           "leads",
		"rights":           "ok: system:serviceaccount:doctor:sallyport has the",
		"calls":            "ok: none of 0 calls has failed",
		"static-manifests": "skip: they are files on the hosts of API servers",
	} {
		expectLine(t, lines, check, want)
	}

	// Whoever may do nothing is told so, line by line.
	nobody := slices.Clone(args)
	nobody[1] = e.userWith(t, "nobody-at-all")
	lines = e.doctorLines(t, 1, nobody...)
	expectLine(t, lines, "injection", "unknown: it is unknown whether PodDefaults are applied")
	for _, check := range []string{"configurations", "authority", "leader", "rights", "calls"} {
		expectLine(t, lines, check, "skip: no permission to")
	}

	folder := t.TempDir()
	hook := "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: x}\nwebhooks: []\n"
	for file, text := range map[string]string{"bad.yaml": hook, "malformed.yaml": "a: ["} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines = e.doctorLines(t, 2, append(args, "--static-manifests-dir", folder)...)
	expectLine(t, lines, "static-manifests", "malformed.yaml:1: not YAML")

	s.Kill()
	refuse, stop := context.WithCancel(t.Context())
	var refused sync.WaitGroup
	refused.Go(func() {
		for ; refuse.Err() == nil; time.Sleep(50 * time.Millisecond) { // as controllers try again
			if err := e.client.Create(refuse, simplePod(name, "refused"), client.DryRunAll); err == nil {
				t.Error("a pod was admitted without its webhook")
			}
		}
	})
	lines = e.doctorLines(t, 2, append(args, "--window=10s")...)
	stop()
	refused.Wait()
	expectLine(t, lines, "reachability", "fix: no server answers at 127.0.0.1:")
	expectLine(t, lines, "replicas", "does not report its metrics")
	expectLine(t, lines, "calls", "requests were refused because poddefault.sallyport.io did not answer within the last ")
	// What is over is told, with since when it has been counted, and is nothing to fix.
	args = append(args, "--window", "1s")
	lines = e.doctorLines(t, 2, args...)
	expectLine(t, lines, "calls", "skip: no calls within the last ")

	// Somebody else's authority, and nobody who would put that right.
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Name: name}, configuration); err != nil {
		t.Fatal(err)
	}
	configuration.Webhooks[0].ClientConfig.CABundle = e.config.CAData
	if err := e.client.Update(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	lines = e.doctorLines(t, 2, args...)
	expectLine(t, lines, "authority", "fix: the caBundle of MutatingWebhookConfiguration poddefault.sallyport.io does not hold the authority that signs")
	other := startRecorder(t)
	lines = e.doctorLines(t, 2, append(args, "--dial", other.Listener.Addr().String())...)
	expectLine(t, lines, "certificate", "fix: poddefault.sallyport.io: caBundle does not sign the serving certificate")

	e.deleteConfiguration(t, name)
	judges := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}} // that of authors
	if err := e.client.Delete(t.Context(), judges); err != nil {
		t.Fatal(err)
	}
	lines = e.doctorLines(t, 2, args...)
	expectLine(t, lines, "configurations", "fix: there is no webhook configuration doctor with a webhook")
}

func (e *env) deleteConfiguration(t *testing.T, name string) {
	t.Helper()
	if err := e.client.Delete(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// hostAddress is an address of this machine that is not a loopback address, which
// endpoints must not have; one of nobody (RFC 5737) if there is none.
func hostAddress(t *testing.T) (address string, own bool) {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() && ip.IP.To4() != nil {
			return ip.IP.String(), true
		}
	}
	return "192.0.2.1", false
}

// testDoctorService puts a server behind a Service, as far as that is possible without
// nodes: the API server's proxy goes to the endpoint itself.
func testDoctorService(t *testing.T, e *env) {
	name := e.namespace(t, "behind-service")
	address, own := hostAddress(t)
	metrics, server := fmt.Sprint(freeport.For(t)), "https://127.0.0.1:443"
	if own { // or else there is nobody at the address
		s := e.start(t, name, "--registration", "None", "--bind-address", address, "--metrics-bind-address", address+":"+metrics,
			"--authority-secret", name+"/sallyport-authority")
		s.Metrics = "http://" + address + ":" + metrics
		s.Probes = s.Metrics
		s.awaitReady(t)
		server = s.URL
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	target := intstr.Parse(port)
	number := target.IntVal
	lines := e.doctorLines(t, 2, "--kubeconfig", e.kubeconfig, "--configuration-name", name, "--service", name+"/sallyport")
	expectLine(t, lines, "service", "fix: there is no Service behind-service/sallyport")

	e.create(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "sallyport"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "webhooks", Port: 443, TargetPort: target}}},
	})
	lines = e.doctorLines(t, 2, "--kubeconfig", e.kubeconfig, "--configuration-name", name, "--service", name+"/sallyport")
	expectLine(t, lines, "service", "fix: no endpoint of Service behind-service/sallyport is ready")
	expectLine(t, lines, "reachability", "fix: the API server does not reach it")

	// The proxy goes to addresses of pods only.
	pod := simplePod(name, "replica")
	e.create(t, pod)
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	if err := e.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: name, Name: "sallyport-1", Labels: map[string]string{discoveryv1.LabelServiceName: "sallyport"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("webhooks"), Port: new(number), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: name, Name: pod.Name, UID: pod.UID},
		}},
	}
	e.create(t, slice)
	if endpoints := lab.EndpointsOf(t, *slice); endpoints != nil {
		e.create(t, endpoints)
	}
	lines = e.doctorLines(t, 2, "--kubeconfig", e.kubeconfig, "--configuration-name", name, "--service", name+"/sallyport", "--metrics-port", metrics)
	expectLine(t, lines, "service", "fix: one endpoint of Service behind-service/sallyport is ready")
	if own {
		expectLine(t, lines, "reachability", "ok: the API server reaches it through Service behind-service/sallyport, and it is ready")
		expectLine(t, lines, "replicas", "ok: replica agree")
	} else {
		expectLine(t, lines, "reachability", "fix: the API server does not reach it")
		expectLine(t, lines, "replicas", "fix: replica does not report its metrics")
	}
	expectLine(t, lines, "certificate", "skip: nothing is registered")

	// It asks on the way of the API server, as a stranger: the proxy shows no one.
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "check.hooks.example.com", Rules: rules("example.com", "things", admissionregistrationv1.Create),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: name, Name: "sallyport", Path: new(poddefault.Path)}, CABundle: e.config.CAData,
			},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
	e.create(t, configuration)
	lines = e.doctorLines(t, 2, "--kubeconfig", e.kubeconfig, "--configuration-name", name)
	if own {
		expectLine(t, lines, "callers", "fix: any caller that reaches the port may call check.hooks.example.com, whose answers disclose the contents of PodDefaults")
	} else {
		expectLine(t, lines, "callers", "skip: ")
	}
	if err := e.client.Delete(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
}

// testDoctorForwards has doctor look at a certificate that is seen only through a pod.
func testDoctorForwards(t *testing.T, e *env) {
	name := e.namespace(t, "forwarded")
	clients, err := kubernetes.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	shown := startRecorder(t)
	address := shown.Listener.Addr().(*net.TCPAddr)
	host := kubelet.Start(t, clients, kubelet.At(address.IP.String()))
	t.Cleanup(func() {
		if err := clients.CoreV1().Nodes().Delete(context.Background(), host.Node, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	e.create(t, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "check.hooks.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: name, Name: "hooks"}, CABundle: e.config.CAData},
			Rules:                   rules("example.com", "things", admissionregistrationv1.Create),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	})
	t.Cleanup(func() {
		if err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	args := []string{"--kubeconfig", e.kubeconfig, "--configuration-name", name}
	says := func(want string) {
		t.Helper()
		expectLine(t, e.doctorLines(t, 2, args...), "certificate", want)
	}
	says("skip: the certificate is not seen from here: services \"hooks\" not found; run 'sallyport doctor' in the cluster, or with --dial and a forwarded port")

	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "hooks"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "other", Port: 80}, {Name: "webhooks", Port: 443}}},
	}
	e.create(t, service)
	says("no ready endpoint of Service forwarded/hooks is a pod")

	pod := simplePod(name, "replica")
	pod.Spec.NodeName = host.Node
	e.create(t, pod)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: name, Name: "hooks-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hooks"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{
			{Name: new("other"), Port: new(int32(1)), Protocol: new(corev1.ProtocolTCP)},
			{Name: new("webhooks"), Port: new(int32(address.Port)), Protocol: new(corev1.ProtocolTCP)},
		},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: name, Name: pod.Name, UID: pod.UID},
		}},
	}
	e.create(t, slice)
	says("fix: check.hooks.example.com: serving certificate has no SAN hooks.forwarded.svc")
	if host.Forwarded(name+"/replica") == 0 {
		t.Error("no connection was forwarded")
	}

	// The proxy does not reach the pod, as where a NetworkPolicy is in the way.
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# TYPE sallyport_poddefaults gauge\nsallyport_poddefaults 1\n")
	}))
	defer metrics.Close()
	port := fmt.Sprint(metrics.Listener.Addr().(*net.TCPAddr).Port)
	expectLine(t, e.doctorLines(t, 2, append(slices.Clone(args), "--metrics-port", port)...), "replicas", "ok: replica agree")
	forwarded := host.Forwarded(name + "/replica")

	get, list := []string{"get"}, []string{"list"}
	args[1] = e.userWith(t, "forwards-nothing",
		rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: get},
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: list})
	says("skip: the certificate is not seen from here: no permission to create pods/portforward in forwarded; run 'sallyport doctor' in the cluster, or with --dial")
	if n := host.Forwarded(name + "/replica"); n != forwarded {
		t.Errorf("%d connections were forwarded for somebody who may not", n-forwarded)
	}
	args[1] = e.kubeconfig

	shown.Close()
	says("connection refused")
}

func testLintOfCluster(t *testing.T, e *env) {
	e.create(t, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "lint-bad"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "bad.hooks.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "lint-away", Name: "away"}},
			Rules:                   append(rules("example.com", "things", admissionregistrationv1.Create), rules("", "pods/exce", admissionregistrationv1.Connect)...),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, MatchPolicy: new(admissionregistrationv1.Exact),
		}},
	})
	status, stdout, stderr := e.look(t, "lint", "--cluster", "--kubeconfig", e.kubeconfig)
	for _, want := range []string{"ValidatingWebhookConfiguration/lint-bad", "service lint-away/away not found", "the cluster has no group example.com", "the core group has no sub-resource pods/exce", "caBundle is empty", "match-policy: bad.hooks.example.com"} {
		if status != 2 || !strings.Contains(stdout, want) {
			t.Errorf("status %d, nothing of %q in\n%s%s", status, want, stdout, stderr)
		}
	}

	partly := e.userWith(t, "partly", rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, Verbs: []string{"list"}})
	status, stdout, stderr = e.look(t, "lint", "--cluster", "--kubeconfig", partly)
	for _, want := range []string{
		"not checked: objects of kind MutatingWebhookConfiguration: no permission to list mutatingwebhookconfigurations.admissionregistration.k8s.io",
		"not checked: objects of kind CustomResourceDefinition: no permission", "not checked: objects of kind Service: no permission", "match-policy: bad.hooks.example.com",
	} {
		if status != 2 || !strings.Contains(stdout, want) {
			t.Errorf("status %d, nothing of %q in\n%s%s", status, want, stdout, stderr)
		}
	}
	if strings.Contains(stdout, "not found") {
		t.Errorf("what may not be seen is said not to be there:\n%s", stdout)
	}
	if err := e.client.Delete(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "lint-bad"}}); err != nil {
		t.Fatal(err)
	}
}

// testLintAgrees holds the rule that says what the API server refuses to the API server.
func testLintAgrees(t *testing.T, e *env) {
	for file, refused := range map[string]bool{"fail.yaml": true, "pass.yaml": false} {
		text := golden.Open(t, "../../internal/offline/lint/testdata/rules/invalid.txtar").File(file)
		for i, document := range strings.Split(string(text), "---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				t.Fatal(err)
			}
			if object.GetName() == "idle" { // without rules, which is accepted and a warning
				continue
			}
			if err := e.client.Create(t.Context(), object, client.DryRunAll); (err != nil) != refused {
				t.Errorf("%s, document %d: %v", file, i+1, err)
			}
		}
	}
	// What lint knows of Kubernetes' own resources without a cluster is there.
	lists, err := kubernetes.NewForConfigOrDie(e.config).Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		if version.Group != "" && strings.Contains(version.Group, ".") && !strings.HasSuffix(version.Group, ".k8s.io") || version.Group == "apiextensions.k8s.io" || version.Group == "apiregistration.k8s.io" {
			continue // defined here, or by those who extend the API server
		}
		var names []string
		for _, resource := range list.APIResources {
			names = append(names, resource.Name)
		}
		hooks, err := yaml.Marshal(&admissionregistrationv1.ValidatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
			ObjectMeta: metav1.ObjectMeta{Name: "all"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "all.hooks.example.com", Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{version.Group}, APIVersions: []string{version.Version}, Resources: names},
			}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "hooks.yaml")
		if err := os.WriteFile(file, hooks, 0o600); err != nil {
			t.Fatal(err)
		}
		if status, stdout, stderr := e.look(t, "lint", "-f", file, "--rule", "unknown-resource"); status != 0 {
			t.Errorf("%s: status %d: %s%s", list.GroupVersion, status, stdout, stderr)
		}
	}
}

func rules(group, resource string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}}
}

// recorder is a server of webhooks that admits everything, and notes who was called.
type recorder struct {
	*httptest.Server
	mu     sync.Mutex
	called []string // paths without the slash
	delay  time.Duration
}

func startRecorder(t *testing.T) *recorder {
	r := &recorder{}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		review := admissionv1.AdmissionReview{}
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err != nil || review.Request == nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		r.called = append(r.called, strings.TrimPrefix(req.URL.Path, "/"))
		r.mu.Unlock()
		time.Sleep(r.delay)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // the caller sees a failure
	}))
	t.Cleanup(r.Close)
	return r
}

// take returns who was called since the last time.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	called := r.called
	r.called = nil
	return called
}

// hook is a webhook at the recorder.
func (r *recorder) hook(name string, change func(*admissionregistrationv1.MutatingWebhook)) admissionregistrationv1.MutatingWebhook {
	w := admissionregistrationv1.MutatingWebhook{
		Name: name + ".chain.example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL: new(r.URL + "/" + name), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}),
		},
		Rules:       rules("", "pods", admissionregistrationv1.Create),
		SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"e2e": "chain"}},
	}
	change(&w)
	return w
}

// testChain compares what chain says with the calls that the API server makes.
func testChain(t *testing.T, e *env) {
	namespace := e.namespace(t, "chain")
	r := startRecorder(t)
	same := func(*admissionregistrationv1.MutatingWebhook) {}
	condition := func(expression string) func(*admissionregistrationv1.MutatingWebhook) {
		return func(w *admissionregistrationv1.MutatingWebhook) {
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: expression}}
		}
	}
	configurations := map[string][]admissionregistrationv1.MutatingWebhook{
		"b-chain": {r.hook("b2", same), r.hook("b1", same)},
		"a-chain": {
			r.hook("a-by-label", func(w *admissionregistrationv1.MutatingWebhook) {
				w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "chain"}}
			}),
			r.hook("a-other-label", func(w *admissionregistrationv1.MutatingWebhook) {
				w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
			}),
			r.hook("a-other-namespace", func(w *admissionregistrationv1.MutatingWebhook) {
				w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "e2e", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"chain"}}}}
			}),
			r.hook("a-other-resource", func(w *admissionregistrationv1.MutatingWebhook) {
				w.Rules = rules("", "services", admissionregistrationv1.Create)
			}),
			r.hook("a-true", condition("object.spec.containers.exists(c, c.image == 'registry.example.com/app:1')")),
			r.hook("a-false", condition("object.metadata.name == 'nobody'")),
			r.hook("a-error-ignored", func(w *admissionregistrationv1.MutatingWebhook) {
				condition("object.spec.nothing.of.this == 1")(w)
				w.FailurePolicy = new(admissionregistrationv1.Ignore)
			}),
			r.hook("a-update", func(w *admissionregistrationv1.MutatingWebhook) {
				w.Rules = rules("", "pods", admissionregistrationv1.Update)
			}),
			r.hook("a-subresource", func(w *admissionregistrationv1.MutatingWebhook) {
				w.Rules = rules("", "pods/status", admissionregistrationv1.Create)
			}),
			r.hook("a-cluster-scope", func(w *admissionregistrationv1.MutatingWebhook) {
				w.Rules[0].Scope = new(admissionregistrationv1.ClusterScope)
			}),
			r.hook("a-star", func(w *admissionregistrationv1.MutatingWebhook) {
				w.Rules = rules("*", "*", admissionregistrationv1.OperationAll)
				w.Rules[0].APIVersions = []string{"*"}
			}),
		},
	}
	for name, webhooks := range configurations {
		e.create(t, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: webhooks})
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v-chain"}}
	for _, w := range []admissionregistrationv1.MutatingWebhook{
		r.hook("v1", same), r.hook("v2", condition("request.operation == 'DELETE'")), r.hook("v3", condition("request.userInfo.username == 'system:admin' || true")),
		r.hook("v4-events", func(w *admissionregistrationv1.MutatingWebhook) {
			w.Rules = rules("events.k8s.io", "events", admissionregistrationv1.Create)
		}),
		r.hook("v5-events-exact", func(w *admissionregistrationv1.MutatingWebhook) {
			w.Rules, w.MatchPolicy = rules("events.k8s.io", "events", admissionregistrationv1.Create), new(admissionregistrationv1.Exact)
		}),
	} {
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, SideEffects: w.SideEffects, AdmissionReviewVersions: w.AdmissionReviewVersions,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
		})
	}
	e.create(t, validating)
	warned := &warnings{}
	config := rest.CopyConfig(e.config)
	config.WarningHandlerWithContext = warned
	warning, err := client.New(config, client.Options{Scheme: e.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for name, expression := range map[string]string{"policy-in": "object.metadata.name == 'chained'", "policy-out": "object.metadata.name == 'other'"} {
		e.create(t, &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					{RuleWithOperations: rules("", "pods", admissionregistrationv1.Create)[0]},
				}},
				MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "named", Expression: expression}},
				Validations:     []admissionregistrationv1.Validation{{Expression: "false", Message: "seen by " + name}},
			},
		})
		e.create(t, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn},
				MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"e2e": "chain"}}},
			},
		})
	}

	pod := simplePod(namespace, "chained")
	pod.Labels = map[string]string{"app": "chain"}
	pod.Spec.Containers[0].Image = "registry.example.com/app:1"
	wantMutating := []string{"a-by-label", "a-true", "a-star", "b2", "b1"}
	eventually(t, "the API server to know of all webhooks and policies", func(ctx context.Context) (bool, error) {
		warned.take()
		r.take()
		err := warning.Create(ctx, pod.DeepCopy(), client.DryRunAll)
		called := r.take()
		return err == nil && len(called) >= 7 && slices.Contains(warned.take(), "seen by policy-in"), err
	})
	warned.take()
	if err := warning.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	called := r.take()
	if len(called) < len(wantMutating) || !slices.Equal(called[:len(wantMutating)], wantMutating) {
		t.Fatalf("the API server called %v", called)
	}
	told := e.chain(t, pod, "pods", "-n", namespace)
	mutating, validatingTold, policies := told["mutating webhooks"], told["validating webhooks"], told["validating policies"]
	if !slices.Equal(mutating, called[:len(wantMutating)]) {
		t.Errorf("called were %v, chain says %v", called[:len(wantMutating)], mutating)
	}
	rest := slices.Sorted(slices.Values(called[len(wantMutating):]))
	if slices.Sort(validatingTold); !slices.Equal(validatingTold, rest) {
		t.Errorf("called were %v, chain says %v", rest, validatingTold)
	}
	if !slices.Equal(policies, []string{"policy-in"}) {
		t.Errorf("chain says %v of policies", policies)
	}
	for _, text := range warned.take() {
		if strings.Contains(text, "policy-out") {
			t.Errorf("a policy that chain keeps out has warned: %s", text)
		}
	}

	// A request in one version and group, and rules for another one.
	event := &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "happened"},
		InvolvedObject: corev1.ObjectReference{Namespace: namespace, Kind: "Pod", Name: "x"},
	}
	if err := e.client.Create(t.Context(), event.DeepCopy(), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	called = r.take()
	told = e.chain(t, event, "events", "-n", namespace)
	if both := slices.Concat(told["mutating webhooks"], told["validating webhooks"]); !slices.Equal(both, called) || !slices.Contains(called, "v4-events") {
		t.Errorf("called were %v, chain says %v", called, both)
	}
	for name := range configurations {
		e.deleteConfiguration(t, name)
	}
}

// chain asks the command about an object. It returns, by phase, the first parts of the
// names of those that see it.
func (e *env) chain(t *testing.T, object client.Object, args ...string) map[string][]string {
	t.Helper()
	data, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if object.GetObjectKind().GroupVersionKind().Empty() {
		data = append([]byte("apiVersion: v1\nkind: Pod\n"), data...)
	}
	path := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := e.look(t, append([]string{"chain", "--list", "-o", "json", "--as", "admin", "--kubeconfig", e.kubeconfig, "-f", path}, args...)...)
	if status != 0 {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	var printed struct {
		Chain []struct{ Phase, Name, Answer, Why string }
	}
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, link := range printed.Chain {
		if link.Answer == "maybe" {
			t.Errorf("of %s, chain knows no answer: %s", link.Name, link.Why)
		}
		if link.Answer != "in" {
			continue
		}
		name := link.Name
		if webhook, ok := strings.CutSuffix(name, ".chain.example.com"); ok {
			name = webhook
		}
		if _, own, ok := strings.Cut(name, "/"); ok {
			name = own
		}
		out[link.Phase] = append(out[link.Phase], name)
	}
	return out
}

// warnings keeps those that the API server sends.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, message, ok := strings.Cut(text, "seen by "); ok {
		text = "seen by " + message
	}
	w.list = append(w.list, text)
}

func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	return list
}
