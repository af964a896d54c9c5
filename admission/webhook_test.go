// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func valid() Webhook {
	return Webhook{
		Name: "check.crontab.example.com",
		Path: "/validate-crontab",
		Type: TypeValidating,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"crontabs"}},
		}},
		Handler: HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*Response, error) { return Allowed(), nil }),
	}
}

func TestWebhookValidateAcceptsWhatTheAPIServerAccepts(t *testing.T) {
	scope := admissionregistrationv1.NamespacedScope
	for _, tc := range []struct {
		name   string
		change func(w *Webhook)
	}{
		{"what is needed and no more", func(*Webhook) {}},
		{"a mutating webhook with every field set", func(w *Webhook) {
			w.Type = TypeMutating
			w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
			w.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "skip", Operator: metav1.LabelSelectorOpDoesNotExist}}}
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "example.com/not-mine", Expression: "true"}, {Name: "other", Expression: "false"}}
			w.MatchPolicy = admissionregistrationv1.Exact
			w.FailurePolicy = admissionregistrationv1.Ignore
			w.TimeoutSeconds = 30
			w.SideEffects = admissionregistrationv1.SideEffectClassNoneOnDryRun
			w.ReinvocationPolicy = admissionregistrationv1.NeverReinvocationPolicy
			w.ReviewVersions = []string{"v1beta1", "v1"}
			w.Rules[0].Scope = &scope
		}},
		{"the core group", func(w *Webhook) { w.Rules[0].APIGroups = []string{""} }},
		{"wildcards that stand alone", func(w *Webhook) {
			w.Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
			w.Rules[0].Rule = admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}}
		}},
		{"all resources and some sub-resources", func(w *Webhook) { w.Rules[0].Resources = []string{"*", "pods/ephemeralcontainers", "*/scale"} }},
		{"a resource and its sub-resources", func(w *Webhook) { w.Rules[0].Resources = []string{"pods", "pods/*"} }},
		{"64 match conditions", func(w *Webhook) { w.MatchConditions = conditions(64) }},
		{"the root path", func(w *Webhook) { w.Path = "/" }},
		{"a path of several parts, with a slash at the end", func(w *Webhook) { w.Path = "/apis/crontabs.v1/" }},
		{"a timeout of a second", func(w *Webhook) { w.TimeoutSeconds = 1 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := valid()
			tc.change(&w)
			if err := w.Problems(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWebhookValidateNamesTheFieldOfAProblem(t *testing.T) {
	scope := admissionregistrationv1.ScopeType("Namespace")
	rule := func(change func(r *admissionregistrationv1.RuleWithOperations)) func(w *Webhook) {
		return func(w *Webhook) { change(&w.Rules[0]) }
	}
	operations := func(ops ...admissionregistrationv1.OperationType) func(w *Webhook) {
		return func(w *Webhook) { w.Rules[0].Operations = ops }
	}
	resources := func(names ...string) func(w *Webhook) {
		return func(w *Webhook) { w.Rules[0].Resources = names }
	}
	for _, tc := range []struct {
		name   string
		change func(w *Webhook)
		want   string
	}{
		{"no name", func(w *Webhook) { w.Name = "" }, "name: "},
		{"a name that is not qualified", func(w *Webhook) { w.Name = "crontab.example" }, "name: must have at least three parts"},
		{"a name with upper case", func(w *Webhook) { w.Name = "Check.crontab.example.com" }, "name: "},
		{"a name of 254 characters", func(w *Webhook) { w.Name = strings.Repeat("a", 240) + ".b.example.com" }, "name: "},
		{"no path", func(w *Webhook) { w.Path = "" }, `path: "" must begin with a slash`},
		{"a path without a slash", func(w *Webhook) { w.Path = "validate" }, "path: "},
		{"a path with a query", func(w *Webhook) { w.Path = "/validate?x=1" }, "path: "},
		{"a path with a fragment", func(w *Webhook) { w.Path = "/validate#x" }, "path: "},
		{"a path with a host", func(w *Webhook) { w.Path = "//example.com/validate" }, "path: "},
		{"a path with an empty part", func(w *Webhook) { w.Path = "/a//b" }, "path: "},
		{"a path with an escape", func(w *Webhook) { w.Path = "/a%20b" }, "path: "},
		{"a path that the API server refuses", func(w *Webhook) { w.Path = "/Validate_x" }, `path: "/Validate_x": part "Validate_x": `},
		{"no type", func(w *Webhook) { w.Type = "" }, `type: is ""; choose Mutating or Validating`},
		{"no rules", func(w *Webhook) { w.Rules = nil }, "rules: are missing"},
		{"a rule without operations", operations(), "rules[0].operations: are missing"},
		{"a rule with an unknown operation", operations("PATCH"), `rules[0].operations: "PATCH" is unknown`},
		{"a rule with all operations and another", operations("CREATE", "*"), `rules[0].operations: "*" must stand alone`},
		{"a rule without groups", rule(func(r *admissionregistrationv1.RuleWithOperations) { r.APIGroups = nil }), "rules[0].apiGroups: is missing"},
		{"a rule with all groups and another", rule(func(r *admissionregistrationv1.RuleWithOperations) { r.APIGroups = []string{"", "*"} }), `rules[0].apiGroups: "*" must stand alone`},
		{"a rule without versions", rule(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = nil }), "rules[0].apiVersions: is missing"},
		{"a rule with an empty version", rule(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = []string{""} }), "rules[0].apiVersions: must not hold an empty string"},
		{"a rule with all versions and another", rule(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = []string{"*", "v1"} }), `rules[0].apiVersions: "*" must stand alone`},
		{"a rule without resources", resources(), "rules[0].resources: is missing"},
		{"a rule with an empty resource", resources("pods", ""), "rules[0].resources: must not hold an empty string"},
		{"a rule with all resources and one of them", resources("pods", "*"), `rules[0].resources: "pods" and "*" overlap`},
		{"a rule with everything and more", resources("*/*", "pods"), `rules[0].resources: "*/*" and "pods" overlap`},
		{"a rule with all sub-resources of a resource and one of them", resources("pods/*", "pods/exec"), `rules[0].resources: "pods/*" and "pods/exec" overlap`},
		{"a rule with a sub-resource of all resources and of one", resources("deployments/scale", "*/scale"), `rules[0].resources: "deployments/scale" and "*/scale" overlap`},
		{"a rule with an unknown scope", rule(func(r *admissionregistrationv1.RuleWithOperations) { r.Scope = &scope }), `rules[0].scope: "Namespace" is unknown`},
		{"a second rule without anything", func(w *Webhook) { w.Rules = append(w.Rules, admissionregistrationv1.RuleWithOperations{}) }, "rules[1].operations: are missing"},
		{"an invalid namespace selector", func(w *Webhook) {
			w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
		}, "namespaceSelector: "},
		{"an invalid object selector", func(w *Webhook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "not a value"}}
		}, "objectSelector: "},
		{"65 match conditions", func(w *Webhook) { w.MatchConditions = conditions(65) }, "matchConditions: are 65"},
		{"a match condition without a name", func(w *Webhook) {
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Expression: "true"}}
		}, "matchConditions[0].name: "},
		{"two match conditions of one name", func(w *Webhook) {
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "a", Expression: "true"}, {Name: "a", Expression: "true"}}
		}, `matchConditions[1].name: duplicate "a"`},
		{"a match condition without an expression", func(w *Webhook) {
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "a", Expression: " \n"}}
		}, "matchConditions[0].expression: is missing"},
		{"an unknown match policy", func(w *Webhook) { w.MatchPolicy = "Same" }, `matchPolicy: "Same" is not allowed; choose Exact or Equivalent`},
		{"an unknown failure policy", func(w *Webhook) { w.FailurePolicy = "fail" }, `failurePolicy: "fail" is not allowed; choose Ignore or Fail`},
		{"side effects that webhooks of v1 may not have", func(w *Webhook) { w.SideEffects = admissionregistrationv1.SideEffectClassSome }, `sideEffects: "Some" is not allowed`},
		{"a negative timeout", func(w *Webhook) { w.TimeoutSeconds = -1 }, "timeoutSeconds: is -1"},
		{"a timeout of 31 seconds", func(w *Webhook) { w.TimeoutSeconds = 31 }, "timeoutSeconds: is 31"},
		{"an unknown reinvocation policy", func(w *Webhook) { w.Type, w.ReinvocationPolicy = TypeMutating, "Always" }, `reinvocationPolicy: "Always" is not allowed`},
		{"a validating webhook with a reinvocation policy", func(w *Webhook) { w.ReinvocationPolicy = admissionregistrationv1.NeverReinvocationPolicy }, "reinvocationPolicy: is for mutating webhooks only"},
		{"an unknown review version", func(w *Webhook) { w.ReviewVersions = []string{"v1", "v2"} }, `reviewVersions: "v2" is not supported`},
		{"a review version twice", func(w *Webhook) { w.ReviewVersions = []string{"v1", "v1"} }, `reviewVersions: duplicate "v1"`},
		{"no handler", func(w *Webhook) { w.Handler = nil }, "handler: is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := valid()
			tc.change(&w)
			err := w.Problems()
			want := fmt.Sprintf("webhook %q: %s", w.Name, tc.want)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("got %v, want an error with %q", err, want)
			}
			if lines := strings.Count(err.Error(), "\n"); lines > 0 && !strings.Contains(tc.name, "second rule") {
				t.Errorf("one problem, %d errors: %v", lines+1, err)
			}
		})
	}
}

func TestWebhookValidateReportsAllProblemsAtOnce(t *testing.T) {
	err := Webhook{}.Problems()
	if err == nil {
		t.Fatal("an empty definition is accepted")
	}
	for _, field := range []string{"name", "path", "type", "rules", "handler"} {
		if !strings.Contains(err.Error(), `webhook "": `+field+": ") {
			t.Errorf("nothing on %s in: %v", field, err)
		}
	}
}

func TestWebhookDefaulted(t *testing.T) {
	for _, tc := range []struct {
		name     string
		in, want Webhook
	}{
		{"a validating webhook", Webhook{Type: TypeValidating}, Webhook{
			Type: TypeValidating, MatchPolicy: admissionregistrationv1.Equivalent, FailurePolicy: admissionregistrationv1.Fail,
			TimeoutSeconds: 5, SideEffects: admissionregistrationv1.SideEffectClassNone, ReviewVersions: []string{"v1", "v1beta1"},
		}},
		{"a mutating webhook is called again if needed", Webhook{Type: TypeMutating}, Webhook{
			Type: TypeMutating, MatchPolicy: admissionregistrationv1.Equivalent, FailurePolicy: admissionregistrationv1.Fail,
			TimeoutSeconds: 5, SideEffects: admissionregistrationv1.SideEffectClassNone, ReviewVersions: []string{"v1", "v1beta1"},
			ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
		}},
		{"what is set stays", Webhook{
			Name: "a.b.c", Path: "/x", Type: TypeMutating, MatchPolicy: admissionregistrationv1.Exact, FailurePolicy: admissionregistrationv1.Ignore,
			TimeoutSeconds: 30, SideEffects: admissionregistrationv1.SideEffectClassNoneOnDryRun, ReviewVersions: []string{"v1beta1"},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
		}, Webhook{
			Name: "a.b.c", Path: "/x", Type: TypeMutating, MatchPolicy: admissionregistrationv1.Exact, FailurePolicy: admissionregistrationv1.Ignore,
			TimeoutSeconds: 30, SideEffects: admissionregistrationv1.SideEffectClassNoneOnDryRun, ReviewVersions: []string{"v1beta1"},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.in.Defaulted()
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
			if again := got.Defaulted(); !reflect.DeepEqual(again, got) {
				t.Errorf("defaulting again gives %+v", again)
			}
		})
	}
}

func conditions(n int) []admissionregistrationv1.MatchCondition {
	out := make([]admissionregistrationv1.MatchCondition, n)
	for i := range out {
		out[i] = admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("condition-%d", i), Expression: "true"}
	}
	return out
}

// Every field has an option, but for those that Mutating and Validating take.
func TestOptionsSetEveryField(t *testing.T) {
	w := Mutating("a.b.example.com", Rules(corev1.SchemeGroupVersion.WithResource("pods")), HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*Response, error) { return Allowed(), nil }),
		AtPath("/a"), WithFailurePolicy(admissionregistrationv1.Ignore), WithTimeout(1), WithNamespaceSelector(&metav1.LabelSelector{}),
		WithObjectSelector(&metav1.LabelSelector{}), WithMatchCondition("a", "true"), WithMatchPolicy(admissionregistrationv1.Exact),
		WithSideEffects(admissionregistrationv1.SideEffectClassNoneOnDryRun), WithReinvocationPolicy(admissionregistrationv1.NeverReinvocationPolicy),
		WithReviewVersions("v1"), WithAllowWedge("a reason"), WithBackstop(&Backstop{Disabled: true}))
	if err := w.Problems(); err != nil {
		t.Error(err)
	}
	for field, value := range reflect.ValueOf(w).Fields() {
		if field.IsExported() && value.IsZero() {
			t.Errorf("no option sets %s", field.Name)
		}
	}
}
