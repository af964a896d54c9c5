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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

// exemption exempts pods of a namespace for a time.
func exemption(namespace, name string, d time.Duration, workload string, objects ...string) *sallyportv1alpha1.Exemption {
	return &sallyportv1alpha1.Exemption{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: sallyportv1alpha1.ExemptionSpec{
			Until: metav1.Time{Time: time.Now().Add(d).Truncate(time.Second)}, PodDefaults: objects, Workloads: []string{workload}, Reason: "breaks rsync",
		},
	}
}

// mayExempt lets a user exempt from these PodDefaults of a namespace, and from no others.
func (e *env) mayExempt(t *testing.T, namespace, user string, names ...string) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "exempt"}}
	if err := e.client.DeleteAllOf(t.Context(), role, client.InNamespace(namespace), client.MatchingFields{"metadata.name": role.Name}); err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		return
	}
	role.Rules = []rbacv1.PolicyRule{{
		APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{kubeflowv1alpha1.PodDefaultResource}, ResourceNames: names, Verbs: []string{exempt.Verb},
	}}
	e.create(t, role)
	err := e.client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "exempt"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

var writingExemptions = rbacv1.PolicyRule{APIGroups: []string{sallyportv1alpha1.GroupName}, Resources: []string{sallyportv1alpha1.ExemptionResource, sallyportv1alpha1.ExemptionResource + "/status"}, Verbs: []string{"*"}}

// exemptPolicy installs the policy of Exemptions until the test ends.
func (e *env) exemptPolicy(t *testing.T) {
	t.Helper()
	for _, object := range exempt.Policy() {
		e.createInCluster(t, object.(client.Object))
		t.Cleanup(func() {
			if err := e.client.Delete(context.Background(), object.(client.Object)); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	}
}

// testExemptionsWithoutServer has the policy alone, and a user who may write Exemptions.
func testExemptionsWithoutServer(t *testing.T, e *env) {
	const name = "exemptions-policy"
	e.namespace(t, name)
	e.exemptPolicy(t)
	e.grant(t, name, "policed", writingExemptions)
	c := e.user(t, "policed")
	all := make([]string, 16)
	for i := range all {
		all[i] = fmt.Sprint("pd-", i)
	}
	one := func(objects ...string) *sallyportv1alpha1.Exemption {
		return exemption(name, "e", time.Hour, "Deployment/web", objects...)
	}
	eventually(t, "the policy to refuse", func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, one("env"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), `user "policed" may not exempt pods from env`), nil
	})
	generated := one("env")
	generated.Name, generated.GenerateName = "", "e-"
	applied := one("env")
	applied.APIVersion, applied.Kind = sallyportv1alpha1.GroupVersion.String(), sallyportv1alpha1.ExemptionKind
	for way, err := range map[string]error{
		"a creation":             c.Create(t.Context(), one("env")),
		"a generated name":       c.Create(t.Context(), generated),
		"server-side apply":      c.Patch(t.Context(), applied, client.Apply, client.FieldOwner("test")), //nolint:staticcheck // the types have no apply configurations
		"one of the cluster":     c.Create(t.Context(), one("cluster/env")),
		"16 objects":             c.Create(t.Context(), one(all...)),
		"a namespace of another": c.Create(t.Context(), exemption(metav1.NamespaceDefault, "e", time.Hour, "*", "env")),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", way, err)
		}
	}

	e.mayExempt(t, name, "policed", append([]string{"env"}, all...)...)
	eventually(t, "the verb to count", func(ctx context.Context) (bool, error) {
		return c.Create(ctx, one("env"), client.DryRunAll) == nil, nil
	})
	if err := c.Create(t.Context(), one(all...), client.DryRunAll); err != nil { // within the API server's limits of cost
		t.Errorf("16 objects that the user may exempt from: %v", err)
	}
	for what, objects := range map[string][]string{"one that the user may not exempt from": {"env", "other"}, "the last of 16": append(all[:15:15], "other"), "the cluster's": {"env", "cluster/env"}} {
		if err := c.Create(t.Context(), one(objects...), client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	written := one("env", "pd-0")
	written.Spec.Workloads = []string{"Deployment/web", "Job/x"}
	if err := c.Create(t.Context(), written); err != nil {
		t.Fatal(err)
	}

	e.mayExempt(t, name, "policed")
	eventually(t, "the verb to be withdrawn", func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(c.Create(ctx, exemption(name, "other", time.Hour, "*", "env"), client.DryRunAll)), nil
	})
	change := func(change func(*sallyportv1alpha1.ExemptionSpec)) error {
		changed := written.DeepCopy()
		change(&changed.Spec)
		return c.Update(t.Context(), changed, client.DryRunAll)
	}
	type spec = sallyportv1alpha1.ExemptionSpec
	for wider, err := range map[string]error{
		"a later end":      change(func(s *spec) { s.Until.Time = s.Until.Add(time.Second) }),
		"another object":   change(func(s *spec) { s.PodDefaults[1] = "pd-1" }),
		"one object more":  change(func(s *spec) { s.PodDefaults = append(s.PodDefaults, "cluster/env") }),
		"another workload": change(func(s *spec) { s.Workloads[1] = "Job/y" }),
		"every workload":   change(func(s *spec) { s.Workloads = []string{"*"} }),
		"another reason":   change(func(s *spec) { s.Reason = "because" }),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", wider, err)
		}
	}
	for narrower, err := range map[string]error{
		"an earlier end":     change(func(s *spec) { s.Until.Time = s.Until.Add(-time.Second) }),
		"fewer objects":      change(func(s *spec) { s.PodDefaults = s.PodDefaults[:1] }),
		"one workload less":  change(func(s *spec) { s.Workloads = s.Workloads[1:] }),
		"the same":           change(func(*spec) {}),
		"a label":            c.Patch(t.Context(), written.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))),
		"its status":         c.Status().Patch(t.Context(), written.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"pods":7}}`))),
		"a dry-run deletion": c.Delete(t.Context(), written.DeepCopy(), client.DryRunAll),
	} {
		if err != nil {
			t.Errorf("%s: %v", narrower, err)
		}
	}
	// The status subresource writes no spec.
	spread := written.DeepCopy()
	spread.Spec.Workloads = []string{"*"}
	if err := c.Status().Patch(t.Context(), spread, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"workloads":["*"]}}`))); err != nil || spread.Spec.Workloads[0] == "*" {
		t.Errorf("the status writes the spec: %v, %v", spread.Spec, err)
	}
	testWeakPolicies(t, e, c, exemption(name, "forbidden", time.Hour, "*", "env"))
}

// testWeakPolicies weakens the policy in ways that let an Exemption pass, which lint reports.
func testWeakPolicies(t *testing.T, e *env, c client.Client, forbidden *sallyportv1alpha1.Exemption) {
	lint := func() (int, string) {
		status, stdout, _ := e.look(t, "lint", "--cluster", "--kubeconfig", e.kubeconfig, "--rule", "policy-exempt")
		return status, stdout
	}
	if status, stdout := lint(); status != 0 {
		t.Errorf("lint of the policy as it is installed: %d\n%s", status, stdout)
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.Name = exempt.PolicyName
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	binding.Name = exempt.PolicyName
	for name, tc := range map[string]struct {
		object client.Object
		patch  string
		want   string
	}{
		"a binding that warns":      {binding, `{"spec":{"validationActions":["Warn"]}}`, "it denies nothing"},
		"labels of the Exemption":   {binding, `{"spec":{"matchResources":{"objectSelector":{"matchLabels":{"a":"b"}}}}}`, "objectSelector excludes objects"},
		"a condition":               {policy, `{"spec":{"matchConditions":[{"name":"x","expression":"false"}]}}`, "match conditions leave out Exemptions"},
		"no objects to ask for":     {policy, `{"spec":{"variables":[{"name":"covered","expression":"true"},{"name":"wider","expression":"object.spec.podDefaults.filter(o, false)"}]}}`, "the variable wider differs"},
		"only updates":              {policy, `{"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["sallyport.io"],"apiVersions":["v1alpha1"],"operations":["UPDATE"],"resources":["exemptions"]}]}}}`, "no rule has CREATE"},
		"failures that let it pass": {policy, `{"spec":{"failurePolicy":"Ignore","matchConstraints":{"resourceRules":[{"apiGroups":["sallyport.io"],"apiVersions":["v1alpha1"],"operations":["CREATE","UPDATE"],"resources":["exemptions"]}]},"variables":[{"name":"covered","expression":"true"},{"name":"wider","expression":"object.spec.podDefaults.map(o, string(1/0))"}]}}`, "failurePolicy must be Fail"},
	} {
		if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(tc.object), tc.object); err != nil {
			t.Fatal(err)
		}
		installed := tc.object.DeepCopyObject().(client.Object)
		if err := e.client.Patch(t.Context(), tc.object, client.RawPatch(types.MergePatchType, []byte(tc.patch))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		eventually(t, name+" to let an Exemption pass", func(ctx context.Context) (bool, error) {
			return c.Create(ctx, forbidden.DeepCopy(), client.DryRunAll) == nil, nil
		})
		if status, stdout := lint(); status != 2 || !strings.Contains(stdout, tc.want) {
			t.Errorf("lint of %s: %d, want %q\n%s", name, status, tc.want, stdout)
		}
		installed.SetResourceVersion(tc.object.GetResourceVersion())
		if err := e.client.Update(t.Context(), installed); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		eventually(t, "the policy to refuse again", func(ctx context.Context) (bool, error) {
			return apierrors.IsForbidden(c.Create(ctx, forbidden.DeepCopy(), client.DryRunAll)), nil
		})
	}
	if err := e.client.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	if status, stdout := lint(); status != 2 || !strings.Contains(stdout, "no binding applies it") {
		t.Errorf("lint without a binding: %d\n%s", status, stdout)
	}
	if err := e.client.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	if status, stdout := lint(); status != 2 || !strings.Contains(stdout, "there is no policy exempt.sallyport.io") {
		t.Errorf("lint without a policy: %d\n%s", status, stdout)
	}
}

// testExemptions has a user who may write Exemptions, and later may exempt, too. The server
// has the printed rights, and there is no policy.
func testExemptions(t *testing.T, e *env) {
	const name = "exemptions"
	e.namespace(t, name)
	e.grant(t, name, "tenant", writingExemptions)
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
	one := exemption(name, "e", time.Hour, "*", "env")
	eventually(t, "the webhook to refuse", func(ctx context.Context) (bool, error) {
		err := tenant.Create(ctx, one.DeepCopy(), client.DryRunAll)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), `"tenant" may not exempt pods from poddefaults.kubeflow.org/env`), nil
	})
	if err := tenant.Create(t.Context(), one.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Fatalf("a user without the verb exempts: %v", err)
	}
	e.mayExempt(t, name, "tenant", "env")
	eventually(t, "the verb to count", func(ctx context.Context) (bool, error) {
		return tenant.Create(ctx, one) == nil, nil
	})
	for what, wider := range map[string]*sallyportv1alpha1.Exemption{
		"may not exempt":                  exemption(name, "f", time.Hour, "*", "env", "cluster/audit"),
		"spec.until: it is more than 24h": exemption(name, "f", 25*time.Hour, "*", "env"),
		"spec.until: it has passed":       exemption(name, "f", -time.Hour, "*", "env"),
	} {
		if err := tenant.Create(t.Context(), wider); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), what) {
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
	until := one.Spec.Until.UTC().Format(time.RFC3339)
	p := newPlugin(t, e)
	p.says(t, 0, []string{"explain", "pod/" + exempt.Name, "-n", name}, "", "PodDefault exemptions/env: not applied, exempt until "+until+" (breaks rsync)")
	p.says(t, 2, []string{"drift", "poddefault/env", "-n", name}, "", "EXEMPTION", until, "breaks rsync")
	if got := p.drift(t, 2, "-n", name); len(got.PodDefaults) != 1 || got.PodDefaults[0].Pods["exempt"] != 1 || got.PodDefaults[0].Pods["missing"] != 0 || got.PodDefaults[0].Pods["surplus"] == 0 {
		t.Errorf("drift: %+v", got.PodDefaults) // what was injected before is surplus
	}
	inForce := func(status metav1.ConditionStatus, reason string, pods int32) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			var now sallyportv1alpha1.Exemption
			if err := e.client.Get(ctx, client.ObjectKeyFromObject(one), &now); err != nil {
				return false, err
			}
			s := now.Status
			condition := apimeta.FindStatusCondition(s.Conditions, sallyportv1alpha1.ConditionInForce)
			return s.ObservedGeneration == now.Generation && s.EndTime.Equal(&now.Spec.Until) && s.Pods != nil && *s.Pods == pods && condition != nil && condition.Status == status &&
				condition.Reason == reason && apimeta.IsStatusConditionTrue(s.Conditions, sallyportv1alpha1.ConditionReady), nil
		}
	}
	eventually(t, "the status to have the pod", inForce(metav1.ConditionTrue, "InForce", 1))

	// A shorter one needs no right; then it ends by itself.
	e.mayExempt(t, name, "tenant")
	if err := tenant.Patch(t.Context(), one, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"until":%q}}`, time.Now().Add(3*time.Second).UTC().Format(time.RFC3339)))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "new pods to be injected again", func(context.Context) (bool, error) {
		has, _ := injected()
		return has, nil
	})
	if got := p.drift(t, 2, "-n", name); len(got.PodDefaults) != 1 || got.PodDefaults[0].Pods["exempt"] != 0 || got.PodDefaults[0].Pods["missing"] == 0 {
		t.Errorf("drift after the end: %+v", got.PodDefaults)
	}
	eventually(t, "the status to have the end", inForce(metav1.ConditionFalse, "Ended", 0))
}
