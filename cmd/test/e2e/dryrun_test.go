// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testAskingTheServer compares what diff, preview and review say with what the API server refuses, where the webhook is
// registered and sees the pod of the dry run once more.
func testAskingTheServer(t *testing.T, e *env) {
	const name = "asking"
	e.namespace(t, name)
	e.serve(t, name, lab.Set("webhooks.poddefault.freshness", poddefault.Consistent), lab.Set("webhooks.poddefault.usage", poddefault.UsageIgnore))
	p := newPlugin(t, e)
	selected := func(use string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{"use": use}}
	}
	pod := func(podName, use string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: " + podName + ", namespace: " + name + ", labels: {use: " + use + "}}, spec: {containers: [{name: main, image: i}]}}\n"
	}
	def := func(object, spec string) string {
		return "{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: " + object + ", namespace: " + name + "}, spec: " + spec + "}\n"
	}
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "objects.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	e.create(t, podDefault(name, "class", kubeflowv1alpha1.PodDefaultSpec{Selector: selected("class"), PriorityClassName: "missing"}))
	e.create(t, podDefault(name, "cpu", kubeflowv1alpha1.PodDefaultSpec{Selector: selected("cpu"), Resources: &corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")},
	}}))
	e.createSoon(t, podDefault(name, "env", kubeflowv1alpha1.PodDefaultSpec{Selector: selected("env"), Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "probe", Labels: map[string]string{"use": "env"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i"}}}},
		meta.Mark("env"))
	e.create(t, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "range"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}},
	}})
	e.applyText(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: asking}, spec: {matchConstraints: "+
		"{namespaceSelector: {matchLabels: {e2e: asking}}, resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, validations: "+
		"[{expression: \"!object.spec.containers.exists(c, has(c.env) && c.env.exists(e, e.name == 'FORBIDDEN'))\", message: no such variable here}]}}\n---\n"+
		"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: asking}, spec: {policyName: asking, validationActions: [Deny]}}\n")

	t.Run("a field is refused that a PodDefault has set", func(t *testing.T) {
		text := []string{"denied: Pod asking/p: API server: ", "no PriorityClass with name missing was found", "spec.priorityClassName comes from PodDefault asking/class"}
		p.says(t, 3, []string{"diff", "-f", "-"}, pod("p", "class"), text...)
		p.says(t, 3, []string{"review", "--server", "-f", "-", "--with", file(def("class", "{selector: {matchLabels: {use: class}}, priorityClassName: missing}"))}, pod("p", "class"), text...)
		p.says(t, 0, []string{"diff", "--server=false", "-f", "-"}, pod("p", "class"), "allowed, changed by")
		p.says(t, 3, []string{"explain", "-f", "-"}, pod("p", "class"), "PodDefault asking/class: applied", "Denied: pods", text[1], text[2])
		p.says(t, 0, []string{"explain", "--server=false", "-f", "-"}, pod("p", "class"), "PodDefault asking/class: applied")
	})
	t.Run("a field is refused that the pod was sent with", func(t *testing.T) {
		p.says(t, 3, []string{"diff", "-f", "-"}, strings.Replace(pod("p", "env"), "image: i", "image: i, terminationMessagePolicy: x", 1),
			"spec.containers[0].terminationMessagePolicy is as it was sent")
	})
	t.Run("a LimitRange refuses what a PodDefault adds", func(t *testing.T) {
		p.says(t, 3, []string{"diff", "-f", "-"}, pod("p", "cpu"), "maximum cpu usage per Container is 4", "the pod without what these add would be admitted: PodDefault asking/cpu")
	})
	t.Run("a policy of others refuses what a PodDefault would add", func(t *testing.T) {
		bad := def("bad", "{selector: {matchLabels: {use: none}}, env: [{name: FORBIDDEN, value: s3cret}]}")
		eventually(t, "the policy to refuse", func(ctx context.Context) (bool, error) {
			err := e.client.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "p"}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "i", Env: []corev1.EnvVar{{Name: "FORBIDDEN"}}}},
			}}, client.DryRunAll)
			return err != nil && strings.Contains(err.Error(), "no such variable here"), nil
		})
		p.says(t, 3, []string{"review", "--server", "-f", "-", "--with", file(bad)}, pod("p", "none"),
			"no such variable here", "the pod without what these add would be admitted: PodDefault asking/bad")
	})
	t.Run("pod security refuses what a file adds, although no file has the namespace", func(t *testing.T) {
		e.namespace(t, "asking-secured")
		ns := &corev1.Namespace{}
		if err := e.client.Get(t.Context(), client.ObjectKey{Name: "asking-secured"}, ns); err != nil {
			t.Fatal(err)
		}
		ns.Labels["pod-security.kubernetes.io/enforce"] = "baseline"
		if err := e.client.Update(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		in := strings.NewReplacer("namespace: asking", "namespace: asking-secured")
		with := file(in.Replace(def("host", "{selector: {matchLabels: {use: host}}, volumes: [{name: h, hostPath: {path: /data}}]}")))
		p.says(t, 3, []string{"review", "--server", "-f", "-", "--with", with}, in.Replace(pod("p", "host")),
			`violates PodSecurity "baseline:latest"`, "would be admitted: PodDefault asking-secured/host")
	})
	t.Run("a pod that exists is not a conflict", func(t *testing.T) {
		e.create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "there", Labels: map[string]string{"use": "env"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i"}}}})
		p.says(t, 0, []string{"diff", "-f", "-"}, pod("there", "env"), "allowed, changed by")
		p.says(t, 0, []string{"diff", "pod/there", "-n", name}, "", "allowed")
		p.says(t, 0, []string{"explain", "pod/there", "-n", name}, "", "PodDefault asking/env: applied")
	})
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"use": "env"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i"}}}}
	e.create(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}})
	t.Run("a preview of a changed PodDefault is not about the one in the cluster", func(t *testing.T) {
		for _, policy := range []string{"", "conflictPolicy: Override, ", "conflictPolicy: Deny, "} {
			changed := def("env", "{"+policy+"selector: {matchLabels: {use: env}}, env: [{name: A, value: '2'}]}")
			p.says(t, 0, []string{"preview", "-n", name, "-f", "-"}, changed, "Deployment asking/web: would change", " of 2 workloads would change, 0 would be denied")
			p.says(t, 0, []string{"preview", "-n", name, "-f", "-", "-o", "yaml"}, changed, "looked: 2\n", "kind: Deployment\n", "name: web\n", "verdict: would change\n")
			p.says(t, 3, []string{"preview", "-n", name, "-f", "-"}, strings.Replace(changed, "env: [", "priorityClassName: missing, env: [", 1),
				"Deployment asking/web: would be denied: ", "spec.priorityClassName comes from PodDefault asking/env", "2 would be denied")
		}
		p.says(t, 0, []string{"preview", "poddefault/env", "-n", name, "--remove"}, "", "1 of 2 workloads would change")
	})
	t.Run("the replacement of a running pod would be refused", func(t *testing.T) {
		late := *template.DeepCopy()
		late.Labels["use"] = "late"
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "late"}, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: late.Labels}, Template: late}}
		e.create(t, set)
		for _, owners := range [][]metav1.OwnerReference{{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: new(true)}}, nil} {
			running := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprintf("late-%d", len(owners)), Labels: late.Labels, OwnerReferences: owners}, Spec: late.Spec}
			e.create(t, running)
			p.says(t, 0, []string{"explain", "pod/" + running.Name, "-n", name}, "")
			tooLate := podDefault(name, "late", kubeflowv1alpha1.PodDefaultSpec{Selector: selected("late"), PriorityClassName: "missing"})
			e.create(t, tooLate)
			p.says(t, 3, []string{"explain", "pod/" + running.Name, "-n", name}, "", "PodDefault asking/late: not applied",
				"Denied: ", "no PriorityClass with name missing", "spec.priorityClassName comes from PodDefault asking/late")
			if err := errors.Join(e.client.Delete(t.Context(), tooLate), e.client.Delete(t.Context(), running, client.GracePeriodSeconds(0))); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("a quota that is used up by the pods themselves is not the change's fault", func(t *testing.T) {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "set"}, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}
		e.create(t, set)
		e.create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "replica", Labels: template.Labels, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: new(true)},
		}}, Spec: template.Spec})
		p.says(t, 0, []string{"explain", "pod/replica", "-n", name}, "", "the template of ReplicaSet asking/set", "PodDefault asking/env: applied")
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}}
		e.create(t, quota)
		quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
		if err := e.client.Status().Update(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
		p.says(t, 3, []string{"diff", "-f", "-"}, pod("p", "env"), "exceeded quota: quota")
		p.says(t, 3, []string{"explain", "-f", "-"}, pod("p", "env"), "Denied: ", "exceeded quota: quota")
		p.says(t, 1, []string{"explain", "pod/replica", "-n", name}, "", "the template of ReplicaSet asking/set", "PodDefault asking/env: applied",
			"Unknown: whether the API server accepts it is not known: the API server refuses such a pod now, without the change too", "exceeded quota", "of 1 pod, whether")
		p.says(t, 1, []string{"preview", "-n", name, "-f", "-"}, def("env", "{selector: {matchLabels: {use: env}}, env: [{name: A, value: '2'}]}"),
			"would change, as far as is known", "refuses such a pod now, without the change too", "exceeded quota", "is not known")
		if err := e.client.Delete(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("without the right to create pods the answer is unknown", func(t *testing.T) {
		reader := p.as(t, e, name)
		for _, args := range [][]string{
			{"diff", "-f", "-", "-n", name},
			{"review", "--server", "-f", "-", "-n", name},
		} {
			reader.says(t, 1, args, pod("p", "env"), "whether the API server accepts it is not known", `cannot create resource "pods"`, "as far as is known")
		}
		reader.says(t, 1, []string{"explain", "-f", "-", "-n", name}, pod("p", "env"), "PodDefault asking/env: applied",
			"Unknown: whether the API server accepts it is not known: ", `cannot create resource "pods"`, "of 1 pod, whether the API server accepts it is not known; --server=false does not ask")
		reader.says(t, 0, []string{"explain", "--server=false", "-f", "-", "-n", name}, pod("p", "env"), "PodDefault asking/env: applied")
		reader.says(t, 1, []string{"preview", "-n", name, "-f", "-"}, def("env", "{selector: {matchLabels: {use: env}}, env: [{name: A, value: '2'}]}"), "whether the API server accepts it is not known", "as far as is known")
		reader.says(t, 0, []string{"diff", "--server=false", "-f", "-", "-n", name}, pod("p", "env"), "allowed, changed by")
	})
	t.Run("a namespace that does not exist yet is unknown", func(t *testing.T) {
		p.says(t, 1, []string{"review", "--server", "-f", "-"}, strings.Replace(pod("p", "env"), "namespace: asking", "namespace: none-yet", 1), "the namespace none-yet does not exist")
	})
}

// as returns a plugin for a user who may read, and not create pods.
func (p *plugin) as(t *testing.T, e *env, name string) *plugin {
	t.Helper()
	e.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + "-reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}})
	e.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name + "-reader"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name + "-reader"}},
	})
	config, err := clientcmd.LoadFromFile(e.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = name + "-reader"
	}
	out := *p
	out.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, out.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return &out
}

// applyText creates objects with kubectl.
func (e *env) applyText(t *testing.T, text string) {
	t.Helper()
	p := newPlugin(t, e)
	if _, stderr, status := p.run(t, text, "create", "-f", "-"); status != 0 {
		t.Fatal(stderr)
	}
}
