// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/test/lab"
)

// testForeignPolicyTerms narrows the policy that stands in for the webhook, and its binding.
func testForeignPolicyTerms(t *testing.T, e *env) {
	name := e.namespace(t, "foreign-policy")
	secret := name + "/authority"
	s := e.serve(t, name, "--authority-secret", secret, lab.Set("webhooks.poddefault.guard", "Backstop"), "--controllers", "poddefault-index")
	e.awaitPolicy(t, name, admissionregistrationv1.Ignore)
	args := []string{"--kubeconfig", e.kubeconfig, "--configuration-name", name, "--authority-secret", secret, "--replica", s.Metrics, "--service-account", name + "/sallyport"}
	expectLine(t, e.doctorLinesAnyStatus(t, args...), "foreign-terms", "ok: no other client narrows the webhooks")
	for object, patch := range map[client.Object]string{
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}: `{"spec":{"matchConditions":[{"name":"off","expression":"false"}],"matchConstraints":{"objectSelector":{"matchLabels":{"never":"x"}}}}}`,
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}: `{"spec":{"matchResources":{"excludeResourceRules":[` +
			`{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]}}}`,
	} {
		if err := e.client.Patch(t.Context(), object, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("kubectl-patch")); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"policy " + name + ": matchConditions off (kubectl-patch)", "policy " + name + ": objectSelector never=x (kubectl-patch)",
		"binding " + name + ": excludeResourceRules pods (kubectl-patch)",
	}
	lines := e.doctorLines(t, 2, args...)
	expectLine(t, lines, "foreign-terms", "fix: terms of other clients narrow the backstop")
	for _, text := range want {
		expectLine(t, lines, "foreign-terms", text)
	}
	status, stdout, stderr := e.look(t, "lint", "--cluster", "--kubeconfig", e.kubeconfig, "--rule", "foreign-terms")
	for _, text := range []string{"kubectl-patch added off to matchConditions: the policy", "kubectl-patch added never=x to objectSelector: the policy", "kubectl-patch added pods to excludeResourceRules"} {
		if status != 2 || !strings.Contains(stdout, text) {
			t.Errorf("lint: status %d, and nothing of %q:\n%s%s", status, text, stdout, stderr)
		}
	}
	s.stop(t)
	e.deleteConfiguration(t, name)
	for _, object := range []client.Object{&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, &admissionregistrationv1.ValidatingAdmissionPolicy{}} {
		object.SetName(name)
		if err := e.client.Delete(t.Context(), object); err != nil {
			t.Error(err)
		}
	}
}
