// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testExemptions has a user who may write namespaces, and later may exempt, too. The server
// has the printed rights.
func testExemptions(t *testing.T, e *env) {
	const name = "exemptions"
	e.namespace(t, name)
	e.grant(t, "", "tenant", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status", "namespaces/finalize"}, Verbs: []string{"*"}})
	e.serve(t, name, "--kubeconfig", e.serviceAccount(t, name), "--controllers=*", lab.Set("webhooks.poddefault.maxExemption", "24h"),
		lab.Set("webhooks.poddefault.guard", "Backstop"), lab.Set("registration.timeoutSeconds", "30"))
	e.awaitPolicy(t, name, admissionregistrationv1.Ignore) // the policy decides, too
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	n := 0
	injected := func() (bool, *corev1.Pod) {
		n++
		pod := simplePod(name, fmt.Sprint("pod-", n))
		e.create(t, pod)
		return len(pod.Spec.Containers[0].Env) > 0, pod
	}
	if has, _ := injected(); !has {
		t.Error("a pod is exempt before there are exemptions")
	}

	tenant := e.user(t, "tenant")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	annotate := func(line string) client.Patch {
		return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+exempt.ExemptAnnotation+`":"`+line+`"}}}`))
	}
	until := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	line := until(time.Hour) + " env * breaks rsync"
	e.awaitRefusal(t, tenant, namespace, annotate(line))
	for way, err := range map[string]error{
		"an update":                              tenant.Patch(t.Context(), namespace.DeepCopy(), annotate(line)),
		"the status":                             tenant.Status().Patch(t.Context(), namespace.DeepCopy(), annotate(line)),
		"finalize":                               e.finalizeWith(t, tenant, name, line),
		"a new namespace":                        tenant.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "exemptions-new", Annotations: map[string]string{exempt.ExemptAnnotation: line}}}),
		"a namespace that the server is not for": tenant.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}, annotate(line)),
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"tenant" may not exempt pods from poddefaults.kubeflow.org/env`) {
			t.Errorf("%s: %v", way, err)
		}
	}
	if err := tenant.Patch(t.Context(), namespace.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/a":"b"}}}`))); err != nil {
		t.Errorf("another annotation: %v", err)
	}

	e.grant(t, name, "tenant", rbacv1.PolicyRule{APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{kubeflowv1alpha1.PodDefaultResource}, ResourceNames: []string{"env"}, Verbs: []string{"exempt"}})
	eventually(t, "the verb to count", func(ctx context.Context) (bool, error) {
		return tenant.Patch(ctx, namespace.DeepCopy(), annotate(line)) == nil, nil
	})
	for what, wider := range map[string]string{
		"may not exempt":       line + "\\n" + until(time.Hour) + " cluster/audit * x",
		"ends more than 24h":   until(25*time.Hour) + " env * x",
		"has ended":            until(-time.Hour) + " env * x",
		"line 1: it needs UNT": "for a while",
	} {
		if err := tenant.Patch(t.Context(), namespace.DeepCopy(), annotate(wider)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q: %v", what, err)
		}
	}

	var exempt *corev1.Pod
	eventually(t, "pods to be exempt", func(context.Context) (bool, error) {
		has, pod := injected()
		exempt = pod
		return !has, nil
	})
	if got := exempt.Annotations[meta.DecisionsAnnotation]; got != "env" {
		t.Errorf("decided: %q", got)
	}
	p := newPlugin(t, e)
	p.says(t, 0, []string{"explain", "pod/" + exempt.Name, "-n", name}, "", "PodDefault exemptions/env: not applied, exempt until "+strings.Fields(line)[0]+" (breaks rsync)")
	p.says(t, 2, []string{"drift", "poddefault/env", "-n", name}, "", "EXEMPT", strings.Fields(line)[0], "breaks rsync")
	if got := p.drift(t, 2, "-n", name); len(got.PodDefaults) != 1 || got.PodDefaults[0].Pods["exempt"] != 1 || got.PodDefaults[0].Pods["missing"] != 0 || got.PodDefaults[0].Pods["surplus"] == 0 {
		t.Errorf("drift: %+v", got.PodDefaults) // what was injected before is surplus
	}

	// A shorter one needs no right; then it ends by itself.
	if err := e.client.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "tenant"}}); err != nil {
		t.Fatal(err)
	}
	if err := tenant.Patch(t.Context(), namespace.DeepCopy(), annotate(until(3*time.Second)+" env * breaks rsync")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "new pods to be injected again", func(context.Context) (bool, error) {
		has, _ := injected()
		return has, nil
	})
	if got := p.drift(t, 2, "-n", name); len(got.PodDefaults) != 1 || got.PodDefaults[0].Pods["exempt"] != 0 || got.PodDefaults[0].Pods["missing"] == 0 {
		t.Errorf("drift after the end: %+v", got.PodDefaults)
	}
}

// awaitRefusal waits until the API server refuses a patch.
func (e *env) awaitRefusal(t *testing.T, user client.Client, object client.Object, patch client.Patch) {
	t.Helper()
	eventually(t, "the patch to be refused", func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(user.Patch(ctx, object.DeepCopyObject().(client.Object), patch, client.DryRunAll)), nil
	})
}

// finalizeWith writes the annotation by the subresource finalize.
func (e *env) finalizeWith(t *testing.T, user client.Client, name, value string) error {
	t.Helper()
	namespace := &corev1.Namespace{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Name: name}, namespace); err != nil {
		t.Fatal(err)
	}
	if namespace.Annotations == nil {
		namespace.Annotations = map[string]string{}
	}
	namespace.Annotations[exempt.ExemptAnnotation] = value
	return user.SubResource("finalize").Update(t.Context(), namespace)
}
