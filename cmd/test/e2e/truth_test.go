// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestTruth switches injection off in ways in which everything else looks well, and has each
// tool say so. The API server is its own: definitions are replaced.
func TestTruth(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *env)
	}{
		{"terms of other clients are reported by everything that looks", testForeignTerms},
		{"doctor proves injection with dry runs, or says that it is unknown", testProof},
		{"command, status, metric and console count the same pods as missed", testMissedAgrees},
		{"what narrows the backstop is reported, too", testForeignPolicyTerms},
		{"Kubeflow's definition over ours is reported until ours is back", testForeignDefinition},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, e) })
	}
}

// readyz is what /readyz?verbose answers.
func (s *server) readyz(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Metrics+"/readyz?verbose", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// hasEvent reports whether there is an event with that reason about an object, whose note
// contains the text.
func (e *env) hasEvent(ctx context.Context, reason, name, text string) (bool, error) {
	var list eventsv1.EventList
	err := e.client.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault))
	return slices.ContainsFunc(list.Items, func(event eventsv1.Event) bool {
		return event.Reason == reason && event.Regarding.Name == name && strings.Contains(event.Note, text)
	}), err
}

func testForeignTerms(t *testing.T, e *env) {
	name := e.namespace(t, "foreign")
	secret := name + "/authority"
	s := e.serve(t, name, "--authority-secret", secret)
	args := []string{"--kubeconfig", e.kubeconfig, "--configuration-name", name, "--authority-secret", secret, "--replica", s.Metrics, "--service-account", name + "/sallyport"}
	pd := envPodDefault(name, "env")
	e.createSoon(t, pd, simplePod(name, "probe"), meta.Mark("env"))
	lines := e.doctorLinesAnyStatus(t, args...)
	expectLine(t, lines, "foreign-terms", "ok: no other client narrows the webhooks")

	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := `{"webhooks":[{"name":"` + poddefault.Name + `","objectSelector":{"matchLabels":{"never":"x"}},"matchConditions":[{"name":"off","expression":"false"}]}]}`
	if err := e.client.Patch(t.Context(), configuration, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("kubectl-patch")); err != nil {
		t.Fatal(err)
	}
	const selector, condition = "objectSelector never=x (kubectl-patch)", "matchConditions off (kubectl-patch)"
	eventually(t, "pods to be created un-injected", func(ctx context.Context) (bool, error) {
		pod := simplePod(name, "passed")
		err := e.client.Create(ctx, pod, client.DryRunAll)
		return pod.Annotations[meta.Mark("env")] == "", err
	})
	eventually(t, "the metric", func(ctx context.Context) (bool, error) {
		value, err := s.Metric(ctx, `sallyport_registration_foreign_terms{kind="MutatingWebhookConfiguration",webhook="`+poddefault.Name+`"}`)
		return value == "2", err
	})
	eventually(t, "the event", func(ctx context.Context) (bool, error) { return e.hasEvent(ctx, "ForeignTerms", name, selector) })
	if text := s.readyz(t); !strings.Contains(text, "[+] registration: terms of other clients narrow the webhooks") || !strings.Contains(text, selector) || !strings.Contains(text, condition) {
		t.Errorf("/readyz?verbose says\n%s", text)
	}
	lines = e.doctorLines(t, 2, args...)
	for _, want := range []string{"fix: terms of other clients narrow the webhooks", selector, condition} {
		expectLine(t, lines, "foreign-terms", want)
	}
	expectLine(t, lines, "injection", "fix: PodDefault "+name+"/env is not applied as foreseen in the namespace "+name+
		": pods are created without PodDefault "+name+"/env: the API server does not call the webhook, ")
	status, stdout, stderr := e.look(t, "lint", "--cluster", "--kubeconfig", e.kubeconfig, "--rule", "foreign-terms")
	for _, want := range []string{"kubectl-patch added never=x to objectSelector", "kubectl-patch added off to matchConditions"} {
		if status != 2 || !strings.Contains(stdout, want) {
			t.Errorf("lint: status %d, and nothing of %q:\n%s%s", status, want, stdout, stderr)
		}
	}

	s.stop(t)
	s = e.serve(t, name, "--authority-secret", secret, lab.Set("registration.foreignTerms", "Refuse"))
	eventually(t, "pods to be injected again", func(ctx context.Context) (bool, error) {
		pod := simplePod(name, "again")
		err := e.client.Create(ctx, pod, client.DryRunAll)
		return pod.Annotations[meta.Mark("env")] != "", err
	})
	args[slices.Index(args, "--replica")+1] = s.Metrics
	expectLine(t, e.doctorLinesAnyStatus(t, args...), "foreign-terms", "ok: no other client narrows the webhooks")
	s.stop(t)
	e.deleteConfiguration(t, name)
	if err := e.client.Delete(t.Context(), pd); err != nil {
		t.Fatal(err)
	}
}

// doctorLinesAnyStatus is what doctor says, whatever its status: checks of other tests'
// leftovers decide about it.
func (e *env) doctorLinesAnyStatus(t *testing.T, args ...string) map[string][]string {
	t.Helper()
	_, stdout, _ := e.look(t, append([]string{"doctor", "-o", "json", "--window=0s"}, args...)...)
	return doctorOf(t, stdout)
}

// kubeflowsDefinition is the definition that Kubeflow's manifests bring.
func kubeflowsDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile("install/testdata/kubeflow/poddefaults-webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(document), definition); err == nil && definition.Kind == "CustomResourceDefinition" {
			// The file leaves out most of its lists, whose values it does not restrict.
			spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			for _, list := range []string{"volumes", "tolerations"} {
				spec.Properties[list] = apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{
					Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
				}}
			}
			return definition
		}
	}
	t.Fatal("no definition")
	return nil
}

func testForeignDefinition(t *testing.T, e *env) {
	name := e.namespace(t, "definition")
	secret := name + "/authority"
	s := e.serve(t, name, "--authority-secret", secret, "--controllers", "poddefault-definition")
	args := []string{"--kubeconfig", e.kubeconfig, "--configuration-name", name, "--authority-secret", secret, "--replica", s.Metrics, "--service-account", name + "/sallyport"}
	definitions, err := crdclient.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	const crdName = "poddefaults.kubeflow.org"
	own := all[slices.IndexFunc(all, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Name == crdName })]
	put := func(definition *apiextensionsv1.CustomResourceDefinition) {
		t.Helper()
		eventually(t, "the definition to be replaced", func(ctx context.Context) (bool, error) {
			live, err := definitions.Get(ctx, crdName, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			live.Spec = definition.DeepCopy().Spec
			_, err = definitions.Update(ctx, live, metav1.UpdateOptions{FieldManager: "kubeflow"})
			return err == nil, nil
		})
	}
	fails := func(o *kubeflowv1alpha1.PodDefault) []string {
		t.Helper()
		err := e.client.Create(t.Context(), o.DeepCopy(), client.DryRunAll)
		var status apierrors.APIStatus
		if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
			t.Fatalf("%s: %v", o.Name, err)
		}
		var fields []string
		for _, cause := range status.Status().Details.Causes {
			fields = append(fields, cause.Field)
		}
		return fields
	}
	const metric = `sallyport_poddefault_definition_missing_fields{definition="` + crdName + `"}`
	is := func(value string) {
		t.Helper()
		eventually(t, metric+" to be "+value, func(ctx context.Context) (bool, error) {
			got, err := s.Metric(ctx, metric)
			return got == value || value == "above 0" && got != "" && got != "0", err
		})
	}
	is("0")
	expectLine(t, e.doctorLinesAnyStatus(t, args...), "definitions", "ok: the served definitions have every field of this version")

	pd := envPodDefault(name, "env")
	pd.Spec.Priority = 7
	e.create(t, pd)
	put(kubeflowsDefinition(t))
	t.Cleanup(func() {
		if live, err := definitions.Get(context.Background(), crdName, metav1.GetOptions{}); err == nil {
			live.Spec = own.Spec
			_, _ = definitions.Update(context.Background(), live, metav1.UpdateOptions{})
		}
	})
	is("above 0")
	if text := s.readyz(t); !strings.Contains(text, "[+] poddefault-definition: the served definition "+crdName+" lacks ") {
		t.Errorf("/readyz?verbose says\n%s", text)
	}
	lines := e.doctorLines(t, 2, args...)
	expectLine(t, lines, "definitions", "fix: the served definition "+crdName+" lacks spec.")
	// What lint lists here is what fails on the next apply.
	const outside = "definition-outside" // of the server, whose webhook would refuse them too
	e.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: outside}})
	old := podDefaultsThatOursRefuse(outside)
	for _, of := range old {
		e.create(t, of.object.DeepCopy())
	}
	e.create(t, envPodDefault(outside, "fine"))
	listed := e.refusedPodDefaults(t, outside)
	for _, of := range old {
		if got := listed[of.object.Name]; !slices.Equal(got, []string{of.field}) {
			t.Errorf("lint lists %q of %s, want %s", got, of.object.Name, of.field)
		}
	}
	if len(listed) != len(old) {
		t.Errorf("lint lists %v", listed)
	}
	// What the signals are about: the next write loses a field.
	eventually(t, "a write to lose the priority", func(ctx context.Context) (bool, error) {
		if err := e.client.Get(ctx, client.ObjectKeyFromObject(pd), pd); err != nil {
			return false, err
		}
		pd.Labels = map[string]string{"at": time.Now().Format("150405.000")}
		err := e.client.Update(ctx, pd)
		return pd.Spec.Priority == 0, err
	})

	put(own)
	is("0")
	for _, of := range old {
		if got := fails(of.object); !slices.Contains(got, of.field) {
			t.Errorf("the next apply of %s fails because of %q, and lint said %s", of.object.Name, got, of.field)
		}
		if err := e.client.Delete(t.Context(), of.object.DeepCopy()); err != nil {
			t.Error(err)
		}
	}
	if text := s.readyz(t); strings.Contains(text, "lacks") {
		t.Errorf("/readyz?verbose says\n%s", text)
	}
	expectLine(t, e.doctorLinesAnyStatus(t, args...), "definitions", "ok: the served definitions have every field of this version")
}

// testProof has doctor try PodDefaults in dry runs where these work, differ, and cannot be
// made.
func testProof(t *testing.T, e *env) {
	name := e.namespace(t, "proof")
	// It applies to no pod, although every-field applies to the pods that it selects.
	e.create(t, podDefault(name, "invalid", kubeflowv1alpha1.PodDefaultSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"every": "field"}}, Env: []corev1.EnvVar{{Name: "A"}, {Name: "A", Value: "2"}},
	}))
	secret := name + "/authority"
	s := e.serve(t, name, "--authority-secret", secret, lab.Set("webhooks.poddefault.authorizeAuthors", `"off"`))
	args := func(kubeconfig string) []string {
		return []string{"--kubeconfig", kubeconfig, "--configuration-name", name, "--authority-secret", secret, "--replica", s.Metrics, "--service-account", name + "/sallyport"}
	}
	injection := func(want string) {
		t.Helper()
		lines := e.doctorLinesAnyStatus(t, args(e.kubeconfig)...)["injection"]
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) ||
			!strings.HasPrefix(want, "ok") && slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "ok") }) {
			t.Errorf("injection says %q, want %q", lines, want)
		}
	}
	everything := everyField(name)
	everything.Name = "every-field"
	everything.Spec.Selector.MatchLabels = map[string]string{"every": "field"}
	e.create(t, everything)
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	e.create(t, podDefault(name, "terms", kubeflowv1alpha1.PodDefaultSpec{
		Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}, {Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}},
			{Key: "there", Operator: metav1.LabelSelectorOpExists}, {Key: "use", Operator: metav1.LabelSelectorOpDoesNotExist},
		}},
		Env: []corev1.EnvVar{{Name: "TIER", Value: "1"}},
	}))
	wide := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "proof-wide"}}
	wide.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"e2e": name}}
	wide.Spec.Selector.MatchLabels = map[string]string{"wide": "yes"}
	wide.Spec.Env = []corev1.EnvVar{{Name: "WIDE", Value: "1"}}
	e.create(t, wide)
	t.Cleanup(func() { _ = e.client.Delete(context.Background(), wide) })
	eventually(t, "the last of them to be applied", func(ctx context.Context) (bool, error) {
		pod := simplePod(name, "probe")
		pod.Labels = map[string]string{"wide": "yes"}
		err := e.client.Create(ctx, pod, client.DryRunAll)
		return pod.Annotations[meta.ClusterMark("proof-wide")] != "", err
	})
	injection("ok: 4 of 5 ")
	var pods corev1.PodList
	if err := e.client.List(t.Context(), &pods, client.InNamespace(name)); err != nil || len(pods.Items) > 0 {
		t.Errorf("doctor left %d pods: %v", len(pods.Items), err)
	}

	// What other admission refuses cannot be tried.
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	e.create(t, quota)
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if err := e.client.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota to be in force", func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(e.client.Create(ctx, simplePod(name, "probe"), client.DryRunAll)), nil
	})
	injection("unknown: of 5 of ")
	if err := e.client.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota to be gone", func(ctx context.Context) (bool, error) {
		return e.client.Create(ctx, simplePod(name, "probe"), client.DryRunAll) == nil, nil
	})

	// Another webhook that fails closed and does not answer refuses the pod, and not injection.
	effects := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "proof-effects"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "effects.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"e2e": name}},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
		FailurePolicy: new(admissionregistrationv1.Fail), TimeoutSeconds: new(int32(1)),
	}}}
	e.create(t, effects)
	eventually(t, "the other webhook to be called", func(ctx context.Context) (bool, error) {
		return e.client.Create(ctx, simplePod(name, "probe"), client.DryRunAll) != nil, nil
	})
	injection("unknown: of 5 of ")
	if err := e.client.Delete(t.Context(), effects); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other webhook to be gone", func(ctx context.Context) (bool, error) {
		return e.client.Create(ctx, simplePod(name, "probe"), client.DryRunAll) == nil, nil
	})

	// A user who may not create pods learns that it is unknown, and not that all is well.
	reader := e.userWith(t, "proof-reader", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}})
	status, stdout, _ := e.look(t, append([]string{"doctor", "-o", "json", "--window=0s"}, args(reader)...)...)
	lines := doctorOf(t, stdout)
	expectLine(t, lines, "injection", "unknown: of 5 of ")
	if status == 0 {
		t.Error("what is unknown is status 0")
	}
	outsider := e.userWith(t, "proof-outsider", rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
	status, stdout, _ = e.look(t, append([]string{"doctor", "-o", "json", "--window=0s"}, args(outsider)...)...)
	expectLine(t, doctorOf(t, stdout), "injection", "unknown: it is unknown whether PodDefaults are applied")
	if status == 0 {
		t.Error("what is unknown is status 0")
	}

	// Without a server and with Ignore, pods pass un-injected.
	s.Kill()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := `{"webhooks":[{"name":"` + poddefault.Name + `","failurePolicy":"Ignore"}]}`
	if err := e.client.Patch(t.Context(), configuration, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pods to pass", func(ctx context.Context) (bool, error) {
		return e.client.Create(ctx, simplePod(name, "probe"), client.DryRunAll) == nil, nil
	})
	injection("fix: ")
	e.deleteConfiguration(t, name)
}
