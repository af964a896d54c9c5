// SPDX-License-Identifier: Apache-2.0

package matcher

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ruleOf reads "GROUPS RESOURCES OPERATIONS", each separated by commas; core is the core group.
func ruleOf(text string) admissionregistrationv1.RuleWithOperations {
	fields := strings.Fields(strings.ReplaceAll(text, "core", "-"))
	out := admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{
		APIGroups: strings.Split(strings.ReplaceAll(fields[0], "-", ""), ","), APIVersions: []string{"v1"}, Resources: strings.Split(fields[1], ","),
	}}
	for _, operation := range strings.Split(fields[2], ",") {
		out.Operations = append(out.Operations, admissionregistrationv1.OperationType(operation))
	}
	return out
}

func TestWhatARuleCanMatch(t *testing.T) {
	const any = admissionregistrationv1.OperationAll
	for _, tc := range []struct {
		rule, group, resource string
		operations            []admissionregistrationv1.OperationType
		want                  bool
	}{
		{"core pods CREATE", "", "pods", nil, true},
		{"core pods CREATE", "", "pods", []admissionregistrationv1.OperationType{"UPDATE", "CREATE"}, true},
		{"core pods CREATE", "", "pods", []admissionregistrationv1.OperationType{"UPDATE"}, false},
		{"core pods CREATE", "", "pods", []admissionregistrationv1.OperationType{any}, true},
		{"core pods *", "", "pods", []admissionregistrationv1.OperationType{"CONNECT"}, true},
		{"core pods *", "apps", "pods", nil, false},
		{"core,apps deployments *", "apps", "deployments", nil, true},
		{"* * *", "apps", "deployments", nil, true},
		{"* * *", "apps", "deployments/scale", nil, false},
		{"* */* *", "apps", "deployments/scale", nil, true},
		{"* */scale *", "apps", "deployments", nil, false},
		{"core pods/* *", "", "pods", nil, true},
		{"core pods/* *", "", "pods/status", nil, true},
		{"core pods/status *", "", "pods", nil, false},
	} {
		if got := Covers(ruleOf(tc.rule), tc.group, tc.resource, tc.operations...); got != tc.want {
			t.Errorf("rule %q, %s %s %v: %t", tc.rule, tc.group, tc.resource, tc.operations, got)
		}
	}
	cluster := admissionregistrationv1.ClusterScope
	scoped := ruleOf("core pods *")
	scoped.Scope = &cluster
	if !Covers(scoped, "", "pods") || !CoversVersion(scoped, schema.GroupVersionResource{Version: "v1", Resource: "pods"}) || CoversVersion(scoped, schema.GroupVersionResource{Version: "v2", Resource: "pods"}) {
		t.Error("the scope, or the version")
	}
}

func TestWhetherRulesOverlap(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"core pods CREATE", "core pods CREATE,UPDATE", true},
		{"core pods CREATE", "core pods UPDATE", false},
		{"core pods *", "core pods CREATE", true},
		{"* * *", "* * *", true},
		{"* pods *", "apps * CREATE", true},
		{"core pods *", "apps pods *", false},
		{"core * CREATE", "apps deployments CREATE", false},
		{"core pods *", "core * *", true},
		{"core pods/status *", "core pods *", false},
		{"core pods/status *", "core pods/* *", true},
		{"core */scale *", "core pods/* *", true},
		{"* */* *", "* */scale *", true},
		{"core pods,services *", "core configmaps,services *", true},
	} {
		for _, pair := range [][2]string{{tc.a, tc.b}, {tc.b, tc.a}} {
			if got := Overlap(ruleOf(pair[0]), ruleOf(pair[1])); got != tc.want {
				t.Errorf("%q and %q: %t", pair[0], pair[1], got)
			}
		}
	}
}

func TestWhatIsNeverSeen(t *testing.T) {
	registration := func(resource, kind string) Request {
		return Bare(admissionregistrationv1.GroupName, "v1", resource, kind, "")
	}
	policy, configuration := registration("validatingadmissionpolicies", "ValidatingAdmissionPolicy"), registration("mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
	review := Bare("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", "")
	older, deletion := review, Bare("", "v1", "pods", "Pod", "team")
	older.KubernetesMinor, deletion.Operation = 36, admissionregistrationv1.Delete
	for name, tc := range map[string]struct {
		request                    Request
		webhooks, validating, both bool // unseen by webhooks, validating policies, mutating policies
		static                     bool
	}{
		"a pod":                               {request: Bare("", "v1", "pods", "Pod", "team")},
		"the deletion of a pod":               {request: deletion, both: true},
		"a policy":                            {request: policy, webhooks: true, validating: true, both: true},
		"a policy, for a static manifest":     {request: policy, static: true},
		"a webhook configuration":             {request: configuration, webhooks: true},
		"a review":                            {request: review, webhooks: true, validating: true, both: true},
		"a review, for a static manifest":     {request: review, webhooks: true, validating: true, both: true, static: true},
		"a review, before 1.37":               {request: older, validating: true, both: true},
		"another resource of the same group":  {request: registration("widgets", "Widget")},
		"a policy of another group":           {request: Bare("example.com", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", "")},
		"a configuration, for a static entry": {request: configuration, static: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.request
			if got := r.UnseenByWebhooks(tc.static); (got != "") != tc.webhooks {
				t.Errorf("webhooks: %q", got)
			}
			if got := r.UnseenByPolicies(tc.static, false); (got != "") != tc.validating {
				t.Errorf("validating policies: %q", got)
			}
			if got := r.UnseenByPolicies(tc.static, true); (got != "") != tc.both {
				t.Errorf("mutating policies: %q", got)
			}
		})
	}
}

func TestWhatIsNotKnownDecidesUnlessSomethingExcludes(t *testing.T) {
	in, out, maybe, refused := Step{In, "in"}, Step{Out, "out"}, Step{Maybe, "maybe"}, Step{Refused, "refused"}
	for _, tc := range []struct {
		steps  []Step
		answer Answer
		why    string
	}{
		{[]Step{in, {In, ""}, in}, In, "in; in"},
		{[]Step{in, maybe}, Maybe, "in; maybe"},
		{[]Step{refused, maybe, out}, Out, "out"},
		{[]Step{refused, maybe}, Maybe, "refused; maybe"}, // which may be false
		{[]Step{in, refused}, Refused, "refused"},
		{nil, In, ""},
	} {
		if answer, why := Conclude(tc.steps); answer != tc.answer || why != tc.why {
			t.Errorf("%v: %s, %q", tc.steps, answer, why)
		}
	}
}

func TestConditions(t *testing.T) {
	var c Conditions
	pod := Bare("", "v1", "pods", "Pod", "team")
	nobody, unknown, deletion := pod, pod, pod
	nobody.User, unknown.Object = "", nil
	deletion.Operation, deletion.Object = admissionregistrationv1.Delete, nil
	for name, tc := range map[string]struct {
		expression string
		request    Request
		closed     bool
		params     bool
		want       Answer
	}{
		"true":                             {expression: "object.metadata.name == 'x'", request: pod, want: In},
		"false":                            {expression: "object.metadata.name == 'y'", request: pod, want: Out},
		"it fails, and failures refuse":    {expression: "object.spec.absent == 1", request: pod, closed: true, want: Refused},
		"it fails, and failures pass":      {expression: "object.spec.absent == 1", request: pod, want: Out},
		"an unknown object":                {expression: "object.metadata.name == 'x'", request: unknown, want: Maybe},
		"an object that a deletion lacks":  {expression: "object == null", request: deletion, want: In},
		"an unknown old object":            {expression: "oldObject.metadata.name == 'x'", request: deletion, want: Maybe},
		"an old object that is not there":  {expression: "oldObject == null", request: pod, want: In},
		"an unknown user":                  {expression: "request.userInfo.username == 'me'", request: nobody, want: Maybe},
		"a known user":                     {expression: "request.userInfo.username == 'me'", request: pod, want: Out},
		"rights":                           {expression: "authorizer.group('').resource('pods').check('get').allowed()", request: pod, want: Maybe},
		"parameters":                       {expression: "params.data.a == 'b'", request: pod, params: true, want: Maybe},
		"what does not compile is refused": {expression: "object.", request: pod, closed: true, want: Refused},
	} {
		t.Run(name, func(t *testing.T) {
			steps := tc.request.Conditions(t.Context(), &c, []admissionregistrationv1.MatchCondition{{Name: "c", Expression: tc.expression}}, tc.closed, tc.params, pod.Resource)
			if len(steps) != 1 || steps[0].Answer != tc.want {
				t.Errorf("%+v", steps)
			}
		})
	}
	list := []admissionregistrationv1.MatchCondition{{Name: "fails", Expression: "object.spec.absent == 1"}, {Name: "is-true", Expression: "true"}}
	if matches, name, err := c.All(t.Context(), list, pod); matches || name != "fails" || err == nil {
		t.Errorf("one fails: %t, %s, %v", matches, name, err)
	}
	if matches, name, err := c.All(t.Context(), append(list, admissionregistrationv1.MatchCondition{Name: "is-false", Expression: "false"}), pod); matches || name != "is-false" || err != nil {
		t.Errorf("one is false: %t, %s, %v", matches, name, err)
	}
	if got := c.Problem(admissionregistrationv1.MatchCondition{Expression: "object."}); !strings.HasPrefix(got, "1:") {
		t.Errorf("the problem: %q", got)
	}
}

func TestASelectorThatTheAPIRefusesMatchesNothing(t *testing.T) {
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
	pod := Bare("", "v1", "pods", "Pod", "team")
	pod.NamespaceLabels = map[string]string{"a": "b"}
	for _, m := range []*admissionregistrationv1.MatchResources{{NamespaceSelector: wrong}, {ObjectSelector: wrong}} {
		steps, _ := pod.Resources(m, "matchConstraints")
		if answer, _ := Conclude(steps); answer != Out {
			t.Errorf("%+v: %s", m, answer)
		}
	}
}
