// SPDX-License-Identifier: Apache-2.0

package sallyporttest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

func TestRunWebhookSaysWhyAWebhookIsNotCalled(t *testing.T) {
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "CREATE", "UPDATE")
	teamA := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	created := sallyporttest.Create(pod(nil))
	for _, tc := range []struct {
		name    string
		review  sallyporttest.Review
		options []admission.WebhookOption
		want    string // the reason for not calling it; empty if it is called
	}{
		{"no selectors", created, nil, ""},
		{"a namespace without labels", created, []admission.WebhookOption{admission.WithNamespaceSelector(teamA)}, "namespaceSelector"},
		{"a namespace with labels", sallyporttest.Create(pod(nil), sallyporttest.NamespaceLabels(map[string]string{"team": "a"})), []admission.WebhookOption{admission.WithNamespaceSelector(teamA)}, ""},
		{"the name of the namespace", created, []admission.WebhookOption{admission.WithNamespaceSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "team-a"}})}, ""},
		{"another name", created, []admission.WebhookOption{admission.WithNamespaceSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "team-b"}})}, "namespaceSelector"},
		{"an object without labels", created, []admission.WebhookOption{admission.WithObjectSelector(teamA)}, "objectSelector"},
		{"an object with labels", sallyporttest.Create(pod(func(p *corev1.Pod) { p.Labels["team"] = "a" })), []admission.WebhookOption{admission.WithObjectSelector(teamA)}, ""},
		{"an old object with labels", sallyporttest.Update(pod(func(p *corev1.Pod) { p.Labels["team"] = "a" }), pod(nil)), []admission.WebhookOption{admission.WithObjectSelector(teamA)}, ""},
		{"a selector of what has no label", created, []admission.WebhookOption{admission.WithObjectSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "skip", Operator: metav1.LabelSelectorOpDoesNotExist}}})}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			webhook := admission.Mutating("a.example.com", pods, answers(), tc.options...)
			for _, notCalled := range []bool{false, true} {
				r := &recorder{}
				sallyporttest.RunWebhook(r, webhook, sallyporttest.Case{Review: tc.review, NotCalled: notCalled})
				want := ""
				switch {
				case notCalled && tc.want == "":
					want = "the API server calls the webhook; it should not"
				case !notCalled && tc.want != "":
					want = "not called: "
				}
				got := strings.Join(r.problems, "\n")
				if (want == "") != (got == "") || !strings.Contains(got, want) || want == "not called: " && !strings.Contains(got, tc.want) {
					t.Errorf("NotCalled %t: got %q, want %q %s", notCalled, got, want, tc.want)
				}
			}
		})
	}
}

// Whatever the case expects: what was not evaluated passes no test.
func TestMatchConditionsThatCannotBeEvaluatedAreReported(t *testing.T) {
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "CREATE")
	webhook := admission.Mutating("a.example.com", pods, answers(), admission.WithMatchCondition("only", "true"))
	for _, notCalled := range []bool{false, true} {
		r := &recorder{}
		sallyporttest.RunWebhook(r, webhook, sallyporttest.Case{Review: sallyporttest.Create(pod(nil)), NotCalled: notCalled})
		if got := strings.Join(r.problems, "\n"); !strings.Contains(got, "set Case.MatchConditions to matchconditions.Evaluate") {
			t.Errorf("not called %t: got %q", notCalled, got)
		}
	}
}
