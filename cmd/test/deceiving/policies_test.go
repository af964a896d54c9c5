// SPDX-License-Identifier: Apache-2.0

package deceiving

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/test/lab"
)

// TestPoliciesOnARealAPIServer evaluates policies that read what the API server sets, and
// what commands may not know.
func TestPoliciesOnARealAPIServer(t *testing.T) {
	t.Parallel()
	all, chosen := cases(t, "policies")
	r := newResults(t, "policies", all)
	w := newWorld(t)
	asked := map[string]*prepared{}
	for _, c := range chosen {
		asked[c.name] = w.prepare(t, c, t.TempDir())
		if old := c.expand(t, asked[c.name].folder, "old.yaml"); old != "" {
			w.create(t, w.objects(t, c, old)...)
		}
	}
	for _, c := range chosen {
		p := asked[c.name]
		path := c.expand(t, p.folder, "policies.yaml")
		w.create(t, w.objects(t, c, path)...)
		p.with = append(p.with, path)
	}
	w.awaitPolicies(t)

	t.Run("cases", func(t *testing.T) {
		for _, c := range chosen {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				w.policy(t, r, c, asked[c.name])
			})
		}
	})
	r.end(t)
}

// policy asks the command about the request of a case, and the API server.
func (w *world) policy(t *testing.T, r *results, c *deceivingCase, p *prepared) {
	t.Helper()
	operation := cmp.Or(c.set["operation"], "CREATE")
	question := []string{"chain", cmp.Or(c.set["resource"], "pods"), "-n", c.id(), "-f", p.file, "--operation", operation, "--as", cmp.Or(c.set["user"], administrator)}
	for group := range strings.SplitSeq(cmp.Or(c.set["groups"], administrators), ",") {
		question = append(question, "--as-group", group)
	}
	if old := c.expand(t, p.folder, "old.yaml"); old != "" && operation == "UPDATE" {
		w.objects(t, c, old)
		question = append(question, "--old", old)
	}
	if c.set["dry"] == "true" {
		question = append(question, "--as-dry-run")
	}
	// The field manager is known to who sends the request, and not always to who asks about it.
	questions := map[string][]string{"": question}
	if manager := c.set["manager"]; manager != "" {
		questions["-manager"] = append(slices.Clone(question), "--field-manager", manager)
	}
	outputs, answers := map[string]string{}, map[string]verdict{}
	ask := func(tool string, args ...string) {
		status, output := w.run(t, args...)
		outputs[tool], answers[tool] = output, judge(status, output, 3, "")
	}
	for suffix, question := range questions {
		ask("chain-cluster"+suffix, append(slices.Clone(question), "--kubeconfig", w.kubeconfig)...)
		for _, file := range p.with {
			question = append(question, "--with", file)
		}
		ask("chain-files"+suffix, question...)
	}
	refusal := w.request(t, c, p.created)
	c.expect(t, refusal)
	for tool, answer := range answers {
		r.add(t, c, tool, refusal, answer, outputs[tool])
	}
}

// awaitPolicies waits until the API server evaluates what was created before: policies of all
// kinds that it has, which are created last.
func (w *world) awaitPolicies(t *testing.T) {
	t.Helper()
	const constraints = "  matchConstraints:\n    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: '${id}'}}\n" +
		"    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]\n"
	c := &deceivingCase{"policies", "sentinel", map[string]string{}, map[string]string{
		"object.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: sentinel}, spec: {containers: [{name: main, image: i}]}}\n",
	}}
	c.files["policies.yaml"] = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: '${id}'}\nspec:\n" + constraints
	if lab.KubernetesMinor(t) >= mutatingPolicies {
		c.files["policies.yaml"] += "  validations: [{expression: '!has(object.metadata.labels) || !(\"sentinel\" in object.metadata.labels)', message: sentinel}]\n" +
			"---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: '${id}'}\nspec:\n  reinvocationPolicy: Never\n" + constraints +
			"  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {\"sentinel\": \"x\"}}}'}}]\n" +
			"---\n{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: '${id}'}, spec: {policyName: '${id}'}}\n"
	} else {
		c.files["policies.yaml"] += "  validations: [{expression: 'false', message: sentinel}]\n"
	}
	c.files["policies.yaml"] += "---\n{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: '${id}'}, spec: {policyName: '${id}', validationActions: [Deny]}}\n"
	p := w.prepare(t, c, t.TempDir())
	w.create(t, w.objects(t, c, c.expand(t, p.folder, "policies.yaml"))...)
	pods, err := w.resource(w.client, p.object)
	if err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t.Context(), t, patience, "the policies to be evaluated", func(ctx context.Context) (bool, error) {
		_, err := pods.Create(ctx, p.object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "denied request: sentinel") {
			return true, nil
		}
		return false, err
	})
}
