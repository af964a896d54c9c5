// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

func kubectl() string { return filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl") }

// plugin runs kubectl with the command under test as its plugin.
type plugin struct {
	path       string
	kubeconfig string
}

func newPlugin(t *testing.T, e *env) *plugin {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"kubectl-sallyport", "kubectl_complete-sallyport"} {
		if err := os.Symlink(e.binary, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return &plugin{path: folder + string(os.PathListSeparator) + os.Getenv("PATH"), kubeconfig: e.kubeconfig}
}

// run returns what kubectl prints and its exit status.
func (p *plugin) run(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command(kubectl(), args...)
	cmd.Env = append(os.Environ(), "PATH="+p.path, "KUBECONFIG="+p.kubeconfig)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// says fails unless the command ends with that status and says all of the texts.
func (p *plugin) says(t *testing.T, status int, args []string, stdin string, texts ...string) string {
	t.Helper()
	stdout, stderr, got := p.run(t, stdin, append([]string{"sallyport"}, args...)...)
	if got != status {
		t.Errorf("%v: status %d, want %d", args, got, status)
	}
	for _, text := range texts {
		if !strings.Contains(stdout+stderr, text) {
			t.Errorf("%v does not say %q:\n%s%s", args, text, stdout, stderr)
		}
	}
	return stdout
}

func testStatuses(t *testing.T, e *env) {
	const name = "statuses"
	e.namespace(t, name)
	s := e.serve(t, name, "--controllers=*")
	one, two := envPodDefault(name, "one"), envPodDefault(name, "two")
	two.Spec.Env[0].Value = "2"
	e.create(t, one)
	e.create(t, two)
	eventually(t, "the conflict to be told", func(ctx context.Context) (bool, error) {
		pd := &kubeflowv1alpha1.PodDefault{}
		err := e.client.Get(ctx, client.ObjectKeyFromObject(one), pd)
		c := apimeta.FindStatusCondition(pd.Status.Conditions, kubeflowv1alpha1.ConditionConflicting)
		return c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "PodDefaults one and two both set env FROM_PODDEFAULT"), err
	})
	out := kubectlAs(t, e, "system:admin", "--as-group", "system:masters", "get", "poddefaults", "-n", name)("")
	if !strings.Contains(out, "ACCEPTED") || !strings.Contains(out, "CONFLICTING") || strings.Count(out, "True") < 4 {
		t.Errorf("kubectl get prints\n%s", out)
	}
	if err := e.client.Create(t.Context(), simplePod(name, "refused")); err == nil || !strings.Contains(err.Error(), "PodDefaults one and two both set env FROM_PODDEFAULT") {
		t.Errorf("what the status says is not what happens: %v", err)
	}
	// The mark of a pod is of the object that it was injected by, whatever is written into
	// its status.
	if got := s.metric(t, `sallyport_poddefault_status_writes_total{result="success"}`); got == "0" {
		t.Error("the metric counts no writes")
	}
	if strings.Contains(s.Log(), "forbidden") {
		t.Errorf("the server lacks a right:\n%s", s.Log())
	}
}

func testPlugin(t *testing.T, e *env) {
	const name = "plugin"
	e.namespace(t, name)
	e.serve(t, name)
	p := newPlugin(t, e)

	proxy := podDefault(name, "proxy", kubeflowv1alpha1.PodDefaultSpec{
		Env: []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "s3cret"}}, Labels: map[string]string{"proxied": "true"},
	})
	proxied := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "for-proxied"}}
	proxied.Spec.Selector.MatchLabels = map[string]string{"proxied": "true"}
	proxied.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
	proxied.Spec.Annotations = map[string]string{"example.com/a": "b"}
	gpu := podDefault(name, "gpu", kubeflowv1alpha1.PodDefaultSpec{
		Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"gpu-pool": "true"}},
		Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
	})
	e.create(t, proxied)
	e.create(t, gpu)
	e.createSoon(t, proxy, simplePod(name, "probe"), meta.Mark("proxy"))
	elsewhere := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}
	elsewhere.Spec.Selector.MatchLabels = map[string]string{"use": "true"}
	elsewhere.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "platform"}}
	elsewhere.Spec.Env = []corev1.EnvVar{{Name: "PLATFORM", Value: "1"}}
	e.create(t, elsewhere)
	e.create(t, simplePod(name, "web"))
	late := podDefault(name, "late", kubeflowv1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "LATE", Value: "1"}}})
	e.create(t, late)

	t.Run("a pod that runs", func(t *testing.T) {
		out := p.says(t, 0, []string{"explain", "pod/web", "-n", name}, "",
			"Pod plugin/web, in the namespace plugin",
			"PodDefault plugin/proxy: applied, current revision", "+ spec.containers[main].env[HTTP_PROXY]", "+ metadata.labels.proxied",
			"ClusterPodDefault for-proxied: applied, current revision; selected by the label proxied, which PodDefault plugin/proxy adds", "+ metadata.annotations[example.com/a]",
			`PodDefault plugin/gpu: label gpu-pool: it wants "true", the pod has no such label`,
			`ClusterPodDefault elsewhere: namespaceSelector: label tier: it wants "platform", the namespace has no such label`,
			"PodDefault plugin/late: not applied")
		if strings.Contains(out, "s3cret") {
			t.Errorf("it gives a value away:\n%s", out)
		}
	})
	t.Run("a pod that carries what is gone", func(t *testing.T) {
		gone := podDefault(name, "gone", kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"gone": "true"}}, Env: []corev1.EnvVar{{Name: "GONE", Value: "1"}},
		})
		carrier := simplePod(name, "carrier")
		carrier.Labels["gone"] = "true"
		e.createSoon(t, gone, carrier, meta.Mark("gone"))
		e.create(t, carrier)
		if err := e.client.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		p.says(t, 0, []string{"explain", "pod/carrier", "-n", name}, "", "PodDefault plugin/gone: applied, as it was at resourceVersion ", "; there is no such object now")
		if err := e.client.Delete(t.Context(), carrier); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("what another kind's pods get", func(t *testing.T) {
		notebook := "apiVersion: kubeflow.org/v1\nkind: Notebook\nmetadata: {name: lab, labels: {use: 'true'}}\nspec: {template: {spec: {containers: [{name: lab, image: x}]}}}\n"
		p.says(t, 0, []string{"explain", "-n", name, "-f", "-"}, notebook, "Pod lab-0 of Notebook lab, in the namespace plugin", "PodDefault plugin/proxy: applied", "+ spec.containers[lab].env[HTTP_PROXY]")
		p.says(t, 0, []string{"diff", "-n", name, "-f", "-"}, notebook, "Pod lab-0 of Notebook lab: allowed, changed by poddefault.sallyport.io")
	})
	t.Run("a pod that does not run yet, and conflicts", func(t *testing.T) {
		pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: new, labels: {use: 'true'}}\nspec: {containers: [{name: main, image: x, env: [{name: HTTP_PROXY, value: mine}]}]}\n"
		out := p.says(t, 3, []string{"explain", "-n", name, "-f", "-"}, pod,
			"PodDefault plugin/proxy: not applied, the pod would be denied", "Denied: conflict occurred", "env HTTP_PROXY of container main")
		if strings.Contains(out, "s3cret") {
			t.Errorf("it gives a value away:\n%s", out)
		}
		p.says(t, 0, []string{"explain", "-n", name, "-o", "json", "-f", "-"}, strings.Replace(pod, "HTTP_PROXY", "OTHER", 1), `"name": "PodDefault plugin/proxy"`, `"applied": true`)
	})
	t.Run("a pod whose label is missing for a placeholder", func(t *testing.T) {
		e.create(t, podDefault(name, "placed", kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"placed": "true"}}, Substitute: true,
			Env: []corev1.EnvVar{{Name: "TEAM", Value: "${pod.labels['team']}"}},
		}))
		pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: new, labels: {placed: 'true'}}\nspec: {containers: [{name: main, image: x}]}\n"
		p.says(t, 3, []string{"explain", "-n", name, "-f", "-"}, pod, "PodDefault plugin/placed", "Denied: ", "label team")
		p.says(t, 0, []string{"explain", "-n", name, "-f", "-"}, strings.Replace(pod, "placed: 'true'", "placed: 'true', team: a", 1), "PodDefault plugin/placed: applied")
	})

	labels := map[string]string{"app": "api", "use": "true"}
	e.create(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "api"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "api", Image: "x"}}}},
	}})
	t.Run("what a workload's next pod gets", func(t *testing.T) {
		p.says(t, 0, []string{"diff", "deployment/api", "-n", name}, "", "allowed, changed by poddefault.sallyport.io", "+    - name: HTTP_PROXY   # PodDefault plugin/proxy")
		p.says(t, 0, []string{"diff", "pod", "web", "-n", name}, "", "LATE", "\nPodDefault plugin/late would be applied now: ")
		p.says(t, 0, []string{"diff", "pod", "web", "-n", name, "-o", "json"}, "", "note: Pod plugin/web: PodDefault plugin/late would be applied now: ")
	})
	t.Run("whose pods would change", func(t *testing.T) {
		next := "apiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\nmetadata: {name: next}\nspec: {selector: {matchLabels: {app: api}}, env: [{name: NEXT, value: '1'}]}\n"
		out := p.says(t, 0, []string{"preview", "-n", name, "-f", "-"}, next,
			"Deployment plugin/api: would change", "NEXT   # PodDefault plugin/next", "1 of 2 workloads would change, 0 would be denied")
		if strings.Contains(out, "HTTP_PROXY   #") {
			t.Errorf("it shows what is so already:\n%s", out)
		}
		p.says(t, 3, []string{"preview", "-n", name, "-f", "-"}, strings.Replace(next, "NEXT", "HTTP_PROXY", 1), "Deployment plugin/api: would be denied: ", "1 would be denied")
		p.says(t, 0, []string{"preview", "poddefault/proxy", "-n", name, "--remove", "--names"}, "", "Deployment plugin/api: would change")
		p.says(t, 0, []string{"preview", "clusterpoddefault/elsewhere"}, "", "0 of 0 workloads would change")
		p.says(t, 0, []string{"preview", "-n", name, "-f", "-"}, strings.Replace(next, "app: api", "app: none", 1),
			"0 of 2 workloads would change, 0 would be denied, 0 would be denied no more\nPodDefault plugin/next would be applied to no pod of a workload:\n", "  Deployment plugin/api: label app: it wants \"none\", the pod has \"api\"\n")
		p.says(t, 0, []string{"preview", "-n", name, "-f", "-"}, strings.Replace(next, "spec: {", "spec: {mode: Audit, ", 1),
			"PodDefault plugin/next would be applied to no pod of a workload:\n  Deployment plugin/api: its mode is Audit\n")
	})
	t.Run("mistakes say what to do", func(t *testing.T) {
		p.says(t, 1, []string{"explain", "-n", name}, "", "name an object, for example pod/web-0, or pass files with -f")
		p.says(t, 1, []string{"explain", "service/x", "-n", name}, "", "choose one of pod, deployment")
		p.says(t, 1, []string{"explain", "notebook/x", "-n", name}, "", "there is no notebook x in the namespace plugin")
		misspelt := "apiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\nmetadata: {name: next}\nspec: {selector: {}, evn: [{name: NEXT, value: '1'}]}\n"
		p.says(t, 1, []string{"preview", "-n", name, "-f", "-"}, misspelt, `unknown field "spec.evn": did you mean env?`)
		never := strings.Replace(misspelt, "evn: [{name: NEXT, value: '1'}]", "env: [{name: A, value: s3cret}, {name: A}]", 1)
		p.says(t, 3, []string{"preview", "-n", name, "-f", "-"}, never, "denied: PodDefault plugin/next: it would be refused when it is written: ", "spec.env[1].name")
		p.says(t, 1, []string{"explain", "pod/absent", "-n", name}, "", "there is no pod absent in the namespace plugin")
		p.says(t, 1, []string{"preview", "pod/web"}, "", "choose poddefault or clusterpoddefault")
	})
	t.Run("help and completion are those of a plugin", func(t *testing.T) {
		p.says(t, 0, []string{"explain", "--help"}, "", "kubectl sallyport explain TYPE/NAME", "  kubectl sallyport explain pod/web-0")
		for words, want := range map[string]string{"explain pod/w": "pod/web", "explain dep": "deployment/", "preview poddefault/pr": "poddefault/proxy", "exp": "explain", "explain -n plu": "plugin"} {
			args := append([]string{"__complete", "sallyport"}, strings.Split(words, " ")...)
			if strings.Contains(words, "/") {
				args = append(args[:len(args)-1], "--namespace="+name, args[len(args)-1])
			}
			if stdout, stderr, _ := p.run(t, "", args...); !strings.Contains(stdout, want+"\n") && !strings.Contains(stdout, want+"\t") {
				t.Errorf("%s: offered %s (%s)", words, stdout, stderr)
			}
		}
	})
}
