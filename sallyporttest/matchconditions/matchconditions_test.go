// SPDX-License-Identifier: Apache-2.0

package matchconditions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/sallyporttest/matchconditions"
)

func TestRunWebhookSaysWhichConditionIsFalse(t *testing.T) {
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "CREATE", "UPDATE")
	condition := func(expression string) admission.WebhookOption {
		return admission.WithMatchCondition("only", expression)
	}
	created := sallyporttest.Create(pod(nil))
	replicas := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}, Spec: corev1.ReplicationControllerSpec{Replicas: new(int32(3))}}
	for _, tc := range []struct {
		name    string
		review  sallyporttest.Review
		options []admission.WebhookOption
		want    string // the reason for not calling it; empty if it is called
	}{
		{"no conditions", created, nil, ""},
		{"a condition that is true", created, []admission.WebhookOption{condition(`object.metadata.name == 'web' && request.operation == 'CREATE'`)}, ""},
		{"a condition that is false", created, []admission.WebhookOption{condition(`object.spec.containers.all(c, c.image != 'a')`)}, `match condition "only" is false`},
		{"a condition about the user", created, []admission.WebhookOption{condition(`!('system:masters' in request.userInfo.groups)`)}, `match condition "only" is false`},
		{"a condition about a right", created, []admission.WebhookOption{condition(`authorizer.group('').resource('pods').namespace('team-a').check('exempt').allowed()`)}, ""},
		{"a right that somebody else has not", sallyporttest.Create(pod(nil), sallyporttest.AsUser("jane")), []admission.WebhookOption{condition(`authorizer.group('').resource('pods').namespace('team-a').check('exempt').allowed()`)}, `match condition "only" is false`},
		{"a condition that fails under Ignore", created, []admission.WebhookOption{condition(`object.spec.nothing == 'x'`), admission.WithFailurePolicy(admissionregistrationv1.Ignore)}, "the failure policy is Ignore"},
		{"a number", sallyporttest.Create(replicas), []admission.WebhookOption{condition(`object.spec.replicas > 2`)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			webhook := admission.Mutating("a.example.com", pods, answers(), tc.options...)
			if tc.name == "a number" {
				webhook.Rules = admission.Rules(corev1.SchemeGroupVersion.WithResource("replicationcontrollers"), "CREATE")
			}
			for _, notCalled := range []bool{false, true} {
				r := &recorder{}
				sallyporttest.RunWebhook(r, webhook, sallyporttest.Case{Review: tc.review, NotCalled: notCalled, MatchConditions: matchconditions.Evaluate})
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

// A condition that cannot be evaluated denies the request under Fail. The webhook is neither
// called nor skipped.
func TestRunWebhookReportsAConditionThatFails(t *testing.T) {
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "CREATE")
	webhook := admission.Mutating("a.example.com", pods, answers(), admission.WithMatchCondition("only", `object.spec.nothing == 'x'`))
	r := &recorder{}
	sallyporttest.RunWebhook(r, webhook, sallyporttest.Case{Review: sallyporttest.Create(pod(nil)), NotCalled: true, MatchConditions: matchconditions.Evaluate})
	if got := strings.Join(r.problems, "\n"); !strings.Contains(got, "the API server denies the request") {
		t.Errorf("got %q", got)
	}
}

// The API server refuses the configuration, whatever the failure policy and the case.
func TestAConditionThatDoesNotCompileIsReported(t *testing.T) {
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "CREATE")
	for _, policy := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore} {
		for _, expression := range []string{`object.spec.`, `objekt.kind == 'Pod'`, `1 + 1`} {
			for _, notCalled := range []bool{false, true} {
				webhook := admission.Mutating("a.example.com", pods, answers(), admission.WithFailurePolicy(policy), admission.WithMatchCondition("only", expression))
				r := &recorder{}
				sallyporttest.RunWebhook(r, webhook, sallyporttest.Case{Review: sallyporttest.Create(pod(nil)), NotCalled: notCalled, MatchConditions: matchconditions.Evaluate})
				if got := strings.Join(r.problems, "\n"); !strings.Contains(got, "does not compile, so the API server refuses the webhook") {
					t.Errorf("%s, %s, not called %t: got %q", expression, policy, notCalled, got)
				}
			}
		}
	}
}

type recorder struct {
	testing.TB
	problems []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}
func (r *recorder) Context() context.Context { return context.Background() }

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: "a"}, {Name: "two", Image: "b"}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func answers() admission.Handler {
	return admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Allowed(), nil
	})
}
