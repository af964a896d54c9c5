// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/jsonpatch"
	"github.com/sallyport-io/sallyport/test/golden"
)

const onPods = "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]}"

// mutating is a policy with its binding. More are further fields of the policy, and of the binding.
func mutating(name, expression, more, ofBinding string) string {
	if !strings.Contains(more, "reinvocationPolicy") {
		more += "  reinvocationPolicy: Never\n"
	}
	return fmt.Sprintf("apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: %[1]s}\nspec:\n  %[2]s\n%[3]s  mutations: [{patchType: JSONPatch, jsonPatch: {expression: %[4]q}}]\n---\n"+
		"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: %[1]s}, spec: {policyName: %[1]s%[5]s}}\n---\n", name, onPods, more, expression, ofBinding)
}

func validating(name, validation, more, ofBinding string) string {
	if !strings.Contains(ofBinding, "validationActions") {
		ofBinding += ", validationActions: [Deny]"
	}
	return fmt.Sprintf("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: %[1]s}\nspec:\n  %[2]s\n%[3]s  validations: [%[4]s]\n---\n"+
		"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %[1]s}, spec: {policyName: %[1]s%[5]s}}\n---\n", name, onPods, more, validation, ofBinding)
}

func label(key, value string) string {
	return fmt.Sprintf("[JSONPatch{op: 'add', path: '/metadata/labels/%s', value: %s}]", key, value)
}

func webhook(kind, name, more string) string {
	return fmt.Sprintf("apiVersion: admissionregistration.k8s.io/v1\nkind: %sWebhookConfiguration\nmetadata: {name: c-%s}\nwebhooks:\n- name: %s\n  clientConfig: {service: {name: s, namespace: ns}}\n"+
		"  rules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]\n  admissionReviewVersions: [v1]\n%s---\n", kind, name, name, more)
}

const (
	pod  = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a, labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}"
	team = "{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {tier: gold}}}\n---\n"
)

// evaluate evaluates the creation of a pod.
func evaluate(t *testing.T, with string, change func(*chain.Run)) (*chain.Result, error) {
	t.Helper()
	objects, _, err := manifest.Parse("with.yaml", []byte(with))
	if err != nil {
		t.Fatalf("%v\n%s", err, with)
	}
	return run(t, objects, pod, change).Do(t.Context())
}

func run(t testing.TB, objects []*manifest.Object, about string, change func(*chain.Run)) *chain.Run {
	t.Helper()
	subject, _, err := manifest.Parse("object.yaml", []byte(about))
	if err != nil {
		t.Fatal(err)
	}
	known, err := resources.OfFiles(objects)
	if err != nil {
		t.Fatal(err)
	}
	resource := known.OfKind(subject[0].GVK())
	r := &chain.Run{Objects: objects, Resources: known, Request: &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Kind: metav1.GroupVersionKind(resource.Kind), Resource: metav1.GroupVersionResource(resource.GroupVersionResource),
		Namespace: "team-a", Name: subject[0].Name, UserInfo: authenticationv1.UserInfo{Username: "alice"},
	}}
	r.Request.Object.Raw = subject[0].Raw
	if change != nil {
		change(r)
	}
	return r
}

// outcomes returns "name: outcome" of all steps; an asterisk marks a reinvocation.
func outcomes(r *chain.Result) string {
	var out []string
	for _, s := range r.Steps {
		again := ""
		if s.Again {
			again = "*"
		}
		name, _, _ := strings.Cut(s.Name, "/")
		if s.Name != "PodSecurity" {
			out = append(out, name+again+": "+string(s.Outcome))
		}
	}
	return strings.Join(out, ", ")
}

func TestAPolicyThatCannotBeEvaluated(t *testing.T) {
	params := "  paramKind: {apiVersion: v1, kind: ConfigMap}\n"
	costly := "{expression: \"[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, [0,1,2,3,4,5,6,7,8,9].all(g, true)))))))\"}"
	for name, tc := range map[string]struct {
		with          string
		want, message string
		denied        string
		note, unknown string
	}{
		"a runtime error of a mutation":                  {mutating("m", label("a", "object.metadata.labels.missing"), "", ""), "m: failed", "no such key: missing", "policy 'm' with binding 'm' denied request", "", ""},
		"a runtime error that is ignored":                {mutating("m", label("a", "object.metadata.labels.missing"), "  failurePolicy: Ignore\n", ""), "m: ignored", "no such key: missing", "", "", ""},
		"a runtime error of a validation":                {validating("v", "{expression: object.metadata.labels.missing == 'x'}", "", ""), "v: failed", "no such key: missing", "'v' with binding 'v' denied request", "", ""},
		"a runtime error of a validation, ignored":       {validating("v", "{expression: object.metadata.labels.missing == 'x'}", "  failurePolicy: Ignore\n", ""), "v: ignored", "no such key", "", "", ""},
		"a runtime error of a validation that warns":     {validating("v", "{expression: object.metadata.labels.missing == 'x'}", "", ", validationActions: [Warn]"), "v: warned", "no such key", "", "", ""},
		"a cost over the budget":                         {validating("v", costly, "", ""), "v: failed", "cost limit", "cost limit", "", ""},
		"a cost over the budget, ignored":                {validating("v", costly, "  failurePolicy: Ignore\n", ""), "v: ignored", "cost limit", "", "", ""},
		"no parameter, which is allowed":                 {validating("v", "{expression: 'false'}", params, ", paramRef: {name: x, parameterNotFoundAction: Allow}"), "v: skipped", "no parameter", "", "", ""},
		"no parameter, which is denied":                  {validating("v", "{expression: 'true'}", params, ", paramRef: {name: x, parameterNotFoundAction: Deny}"), "v: failed", "no params found", "no params found", "", ""},
		"no parameter of a mutating policy":              {mutating("m", label("a", "params.data.x"), params, ", paramRef: {name: x, parameterNotFoundAction: Deny}"), "m: failed", "no params found", "no params found", "", ""},
		"no parameter, denied, and failures are ignored": {mutating("m", label("a", "params.data.x"), params+"  failurePolicy: Ignore\n", ", paramRef: {name: x, parameterNotFoundAction: Deny}"), "m: ignored", "no params found", "", "", ""},
		"a kind of parameters that is not known":         {validating("v", "{expression: 'true'}", "  paramKind: {apiVersion: example.com/v1, kind: Limit}\n", ", paramRef: {name: x, parameterNotFoundAction: Allow}"), "v: failed", "failed to find resource referenced by paramKind", "paramKind", "", ""},
		"a match condition that is false":                {validating("v", "{expression: 'false'}", "  matchConditions: [{name: never, expression: 'false'}]\n", ""), "v: skipped", "match condition never is false", "", "", ""},
		"a match condition that fails":                   {validating("v", "{expression: 'true'}", "  matchConditions: [{name: broken, expression: object.metadata.labels.missing == 'x'}]\n", ""), "v: failed", "no such key: missing", "no such key", "", ""},
		"a match condition that fails, ignored":          {validating("v", "{expression: 'false'}", "  failurePolicy: Ignore\n  matchConditions: [{name: broken, expression: object.metadata.labels.missing == 'x'}]\n", ""), "v: ignored", "match conditions cannot be evaluated", "", "", ""},
		"a match condition that fails for a mutation":    {mutating("m", label("a", "'x'"), "  matchConditions: [{name: broken, expression: object.metadata.labels.missing == 'x'}]\n", ""), "m: failed", "no such key: missing", "no such key", "", ""},
		"rights":                                {validating("v", "{expression: \"authorizer.group('').resource('pods').check('create').allowed()\"}", "", ""), "v: unknown", "depends on rights", "", "", "v/v: it depends on rights"},
		"rights in a mutation":                  {mutating("m", label("a", "string(authorizer.group('').resource('pods').check('create').allowed())"), "", ""), "m: unknown", "depends on rights", "", "", "m/m: it depends on rights"},
		"rights in a match condition":           {mutating("m", label("a", "'x'"), "  matchConditions: [{name: may, expression: \"authorizer.group('').resource('pods').check('create').allowed()\"}]\n", ""), "m: unknown", "depends on rights", "", "", "m/m: match conditions: it depends on rights"},
		"rights in a webhook's match condition": {webhook("Validating", "v.example.com", "  sideEffects: None\n  matchConditions: [{name: may, expression: \"authorizer.group('').resource('pods').check('create').allowed()\"}]\n"), "", "depends on rights", "", "", "match conditions of webhooks"},
		"a binding without policy":              {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: absent, validationActions: [Deny]}}", "", "", "", "there is no policy absent", ""},
		"a policy without binding":              {strings.Split(validating("v", "{expression: 'false'}", "", ""), "---\n")[0], "", "", "", "it has no binding", ""},
		"policies whose order decides":          {mutating("a", label("x", "'a'"), "", "") + mutating("b", label("x", "'b'"), "", ""), "a: changed, b: changed", "", "", "order of the mutating policies", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := evaluate(t, team+tc.with, nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := got.PrintText(&text, "CREATE pods", true); err != nil {
				t.Fatal(err)
			}
			if outcomes(got) != tc.want || !strings.Contains(text.String(), tc.message) {
				t.Errorf("%s, want %s with %q\n%s\n%s", outcomes(got), tc.want, tc.message, all, text.String())
			}
			switch {
			case tc.denied == "" && got.Denied != nil:
				t.Errorf("denied: %s", got.Denied.Message)
			case tc.denied != "" && (got.Denied == nil || !strings.Contains(got.Denied.Message, tc.denied)):
				t.Errorf("%+v, want a refusal with %q", got.Denied, tc.denied)
			}
			if strings.Contains(strings.Join(got.Notes, "\n"), "order") != strings.Contains(tc.note, "order") || !strings.Contains(strings.Join(got.Notes, "\n"), tc.note) {
				t.Errorf("notes %q, want %q", got.Notes, tc.note)
			}
			if (len(got.Unknown) > 0) != (tc.unknown != "") || !strings.Contains(strings.Join(got.Unknown, "\n"), tc.unknown) || (got.ErrUnknown() != nil) != (tc.unknown != "") {
				t.Errorf("unknown %q, want %q", got.Unknown, tc.unknown)
			}
		})
	}
}

func TestWhatTheAPIServerWouldNotAcceptIsAnError(t *testing.T) {
	for name, tc := range map[string]struct{ with, want string }{
		"an expression that does not compile": {validating("v", "{expression: object.spec.}", "", ""), "with.yaml:4: ValidatingAdmissionPolicy v: object.spec."},
		"a mutation that does not compile":    {mutating("m", "[JSONPatch{op: 1}]", "", ""), "MutatingAdmissionPolicy m: "},
		"a variable that does not compile":    {validating("v", "{expression: 'true'}", "  variables: [{name: x, expression: '1 +'}]\n", ""), "variable x"},
		"a condition that does not compile":   {validating("v", "{expression: 'true'}", "  matchConditions: [{name: x, expression: '1'}]\n", ""), "must evaluate to bool"},
		"one that no binding names":           {strings.ReplaceAll(validating("v", "{expression: object.spec.}", "", ""), "policyName: v", "policyName: other"), "with.yaml:4: ValidatingAdmissionPolicy v: object.spec."},
		"a mutation that no binding names":    {strings.ReplaceAll(mutating("m", "[JSONPatch{op: 1}]", "", ""), "policyName: m", "policyName: other"), "MutatingAdmissionPolicy m: "},
		"parameters without their kind":       {validating("v", "{expression: params.data.x == ''}", "", ""), "undeclared reference to 'params'"},
		"a mutation of no type":               {strings.ReplaceAll(mutating("m", "[]", "", ""), "patchType: JSONPatch", "patchType: Merge"), `patchType: Unsupported value: "Merge"`},
		"no constraints":                      {strings.ReplaceAll(validating("v", "{expression: 'true'}", "", ""), "  "+onPods+"\n", ""), "matchConstraints.resourceRules are missing"},
		"a policy that is given twice":        {validating("v", "{expression: 'true'}", "", "") + validating("v", "{expression: 'true'}", "", ""), "was given before, at with.yaml:1"},
		"a binding without actions":           {strings.ReplaceAll(validating("v", "{expression: 'true'}", "", ""), ", validationActions: [Deny]", ""), "validationActions are missing"},
		"a reference without action":          {validating("v", "{expression: 'true'}", "", ", paramRef: {name: x}"), "parameterNotFoundAction is missing"},
		"a field of another type":             {strings.ReplaceAll(validating("v", "{expression: 'true'}", "", ""), "policyName: v", "policyName: [v]"), "spec.policyName"},
		"a webhook's condition":               {webhook("Validating", "v.example.com", "  sideEffects: None\n  matchConditions: [{name: x, expression: '1'}]\n"), "must evaluate to bool"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := evaluate(t, tc.with, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestReinvocationIsThatOfTheAPIServer(t *testing.T) {
	set := admission.Mutating("set.example.com", nil, admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return &admission.Response{Allowed: true, Patch: jsonpatch.Patch{{Op: jsonpatch.Add, Path: "/metadata/labels/set", Value: []byte(`"x"`)}}, Origins: []admission.Origin{{Path: "/metadata/labels/set", Source: "somebody"}}}, nil
	}))
	with := team + mutating("sees", label("sees", "has(object.metadata.labels.set) ? 'yes' : 'no'"), "  reinvocationPolicy: IfNeeded\n", "") +
		mutating("once", label("once", "has(object.metadata.labels.set) ? 'yes' : 'no'"), "  reinvocationPolicy: Never\n", "") +
		webhook("Mutating", "set.example.com", "  sideEffects: None\n  reinvocationPolicy: IfNeeded\n")
	got, err := evaluate(t, with, func(r *chain.Run) { r.Webhooks = []admission.Webhook{set} })
	if err != nil {
		t.Fatal(err)
	}
	if want := "once: changed, sees: changed, c-set.example.com: changed, sees*: changed, c-set.example.com*: unchanged"; outcomes(got) != want {
		t.Errorf("%s\nwant %s", outcomes(got), want)
	}
	labels, _ := json.Marshal(got.Object["metadata"].(map[string]any)["labels"])
	if string(labels) != `{"app":"x","once":"no","sees":"yes","set":"x"}` {
		t.Errorf("labels %s", labels)
	}
	var text strings.Builder
	if err := got.PrintText(&text, "CREATE pods", false); err != nil || !strings.Contains(text.String(), `+ metadata.labels.set = "x"   # somebody`) {
		t.Errorf("%v\n%s", err, text.String())
	}
	text.Reset()
	if err := got.PrintText(&terminal.Screen{Writer: &text, Width: 60, Color: true}, "CREATE pods", false); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/terminal.txt", strings.ReplaceAll(text.String(), "\x1b", "^"))
}

// Two webhooks that undo each other, and policies, end after one reinvocation.
func TestACircularReinvocationEnds(t *testing.T) {
	toggle := func(name, value string) admission.Webhook {
		return admission.Mutating(name, nil, admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
			return &admission.Response{Allowed: true, Patch: jsonpatch.Patch{{Op: jsonpatch.Add, Path: "/metadata/labels/t", Value: []byte(value)}}}, nil
		}))
	}
	more := "  sideEffects: None\n  reinvocationPolicy: IfNeeded\n"
	got, err := evaluate(t, team+webhook("Mutating", "a.example.com", more)+webhook("Mutating", "b.example.com", more)+mutating("m", label("t", "'m'"), "  reinvocationPolicy: IfNeeded\n", ""), func(r *chain.Run) {
		r.Webhooks = []admission.Webhook{toggle("a.example.com", `"a"`), toggle("b.example.com", `"b"`)}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "m: changed, c-a.example.com: changed, c-b.example.com: changed, m*: changed, c-a.example.com*: changed, c-b.example.com*: changed"; outcomes(got) != want {
		t.Errorf("%s\nwant %s", outcomes(got), want)
	}
}

func TestAWebhookThatFails(t *testing.T) {
	broken := admission.Validating("broken.example.com", nil, admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return nil, errors.New("it is broken")
	}))
	for policy, want := range map[string]string{"Fail": "failed", "Ignore": "ignored"} {
		got, err := evaluate(t, team+webhook("Validating", "broken.example.com", "  sideEffects: None\n  failurePolicy: "+policy+"\n"), func(r *chain.Run) { r.Webhooks = []admission.Webhook{broken} })
		if err != nil {
			t.Fatal(err)
		}
		if outcomes(got) != "c-broken.example.com: "+want || (got.Denied != nil) != (policy == "Fail") {
			t.Errorf("%s: %s, %+v", policy, outcomes(got), got.Denied)
		}
	}
}

func TestWebhooksOfOthersAreUnknownUnlessTheyAreCalled(t *testing.T) {
	var asked []admissionv1.AdmissionReview
	https := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		asked = append(asked, review)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "not today"}}
		_ = json.NewEncoder(out).Encode(review)
	}))
	defer https.Close()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: https.Certificate().Raw}))
	with := func(address, sideEffects string) string {
		return team + strings.Replace(webhook("Validating", "other.example.com", "  sideEffects: "+sideEffects+"\n"), "{service: {name: s, namespace: ns}}", fmt.Sprintf("{url: %q, caBundle: %s}", address, ca), 1)
	}
	for name, tc := range map[string]struct {
		address, sideEffects string
		call                 bool
		want, why            string
		calls                int
	}{
		"not called":                 {https.URL, "None", false, "unknown", "--call", 0},
		"called":                     {https.URL, "NoneOnDryRun", true, "denied", "not today", 1},
		"side effects":               {https.URL, "Some", true, "unknown", "sideEffects", 0},
		"unknown side effects":       {https.URL, "Unknown", true, "unknown", "sideEffects", 0},
		"a server that is not there": {"https://127.0.0.1:1", "None", true, "unknown", "cannot be reached", 0},
	} {
		t.Run(name, func(t *testing.T) {
			asked = nil
			got, err := evaluate(t, with(tc.address, tc.sideEffects), func(r *chain.Run) { r.Call = tc.call })
			if err != nil {
				t.Fatal(err)
			}
			if outcomes(got) != "c-other.example.com: "+tc.want || len(asked) != tc.calls || !strings.Contains(strings.Join(got.Steps[1].Messages, ""), tc.why) {
				t.Errorf("%s, %d calls, %q", outcomes(got), len(asked), got.Steps[1].Messages)
			}
			for _, review := range asked {
				if review.Request.DryRun == nil || !*review.Request.DryRun {
					t.Error("the call is not a dry run")
				}
			}
			if (got.Denied != nil) != (tc.want == "denied") {
				t.Errorf("%+v", got.Denied)
			}
		})
	}
}

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 3}
              items: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, value: {type: string, default: d}}}}
---
`

func TestCustomResourcesAreDefaultedAndMergedByTheirDefinition(t *testing.T) {
	with := crd + team + `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: m}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [crontabs]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{items: [Object.spec.items{name: "b"}], size: object.spec.size + 1}}'}}]
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: m}, spec: {policyName: m}}
`
	objects, _, err := manifest.Parse("with.yaml", []byte(with))
	if err != nil {
		t.Fatal(err)
	}
	got, err := run(t, objects, "{apiVersion: example.com/v1, kind: CronTab, metadata: {name: c}, spec: {items: [{name: a, value: x}]}}", nil).Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if spec, _ := json.Marshal(got.Object["spec"]); string(spec) != `{"items":[{"name":"a","value":"x"},{"name":"b","value":"d"}],"size":4}` {
		t.Errorf("spec %s, %s", spec, outcomes(got))
	}
	if len(got.Notes) > 0 {
		t.Errorf("notes %q", got.Notes)
	}
}

func TestUpdatesAndDeletionsSeeTheOldObject(t *testing.T) {
	with := team + mutating("m", label("was", "oldObject.metadata.labels.app"), "", "") + validating("v", "{expression: oldObject.metadata.labels.app != 'old', message: it was old}", "  matchConditions: [{name: deleted, expression: request.operation == 'DELETE'}]\n", "")
	old := strings.ReplaceAll(pod, "app: x", "app: old")
	parsed, _, err := manifest.Parse("old.yaml", []byte(old))
	if err != nil {
		t.Fatal(err)
	}
	got, err := evaluate(t, with, func(r *chain.Run) { r.Request.Operation, r.Request.OldObject.Raw = admissionv1.Update, parsed[0].Raw })
	if err != nil || outcomes(got) != "m: changed, v: skipped" || got.Denied != nil {
		t.Errorf("UPDATE: %v, %s, %+v", err, outcomes(got), got.Denied)
	}
	got, err = evaluate(t, with, func(r *chain.Run) {
		r.Request.Operation, r.Request.OldObject.Raw, r.Request.Object.Raw = admissionv1.Delete, parsed[0].Raw, nil
	})
	if err != nil || outcomes(got) != "v: denied" || got.Denied == nil || got.Object != nil {
		t.Errorf("DELETE: %v, %s, %+v", err, outcomes(got), got.Denied)
	}
}

func TestSelectorsAndActionsDecide(t *testing.T) {
	deny := "{expression: 'false', messageExpression: \"'in ' + namespaceObject.metadata.labels.tier\"}"
	for name, tc := range map[string]struct{ binding, want, warning, annotation string }{
		"a namespace that is selected":      {", matchResources: {namespaceSelector: {matchLabels: {tier: gold}}}", "v: denied", "", ""},
		"a namespace that is not":           {", matchResources: {namespaceSelector: {matchLabels: {tier: silver}}}", "", "", ""},
		"an object that is not":             {", matchResources: {objectSelector: {matchLabels: {app: z}}}", "", "", ""},
		"a name that is left out":           {", matchResources: {excludeResourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'], resourceNames: [p]}]}", "", "", ""},
		"a warning":                         {", validationActions: [Warn]", "v: warned", "in gold", ""},
		"an audit annotation":               {", validationActions: [Audit]", "v: audited", "", "in gold"},
		"a denial with an audit annotation": {", validationActions: [Deny, Audit]", "v: denied", "", "in gold"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := evaluate(t, team+validating("v", deny, "", tc.binding), nil)
			if err != nil {
				t.Fatal(err)
			}
			if outcomes(got) != tc.want || (got.Denied != nil) != strings.Contains(tc.want, "denied") {
				t.Errorf("%s, %+v", outcomes(got), got.Denied)
			}
			if tc.warning != "" != slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, "in gold") }) {
				t.Errorf("warnings %q", got.Warnings)
			}
			if audited := got.AuditAnnotations["validation.policy.admission.k8s.io/validation_failure"]; (tc.annotation != "") != strings.Contains(audited, "in gold") {
				t.Errorf("audit annotations %q", got.AuditAnnotations)
			}
		})
	}
}

func TestAKindWhoseDefaultsAreNotKnownIsNoted(t *testing.T) {
	got, err := run(t, nil, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {selector: {}, template: {}}}", func(r *chain.Run) { r.Request.Namespace = "default" }).Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(got.Notes, "\n"); !strings.Contains(all, "defaults for DaemonSet are applied") || !strings.Contains(all, "namespace default is not among the objects") {
		t.Error(all)
	}
}

func FuzzObjects(f *testing.F) {
	f.Add(team + mutating("m", label("a", "'x'"), "  reinvocationPolicy: IfNeeded\n", "") + validating("v", "{expression: 'true'}", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n", ", paramRef: {selector: {}, parameterNotFoundAction: Deny}"))
	f.Add(crd + webhook("Mutating", "a.example.com", "  sideEffects: None\n  failurePolicy: Ignore\n") + webhook("Validating", "b.example.com", "  matchConditions: [{name: x, expression: 'true'}]\n"))
	f.Add("{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {pod-security.kubernetes.io/enforce: restricted}}}")
	f.Add("{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: c}, webhooks: [{}]}")
	f.Fuzz(func(t *testing.T, text string) {
		objects, _, err := manifest.Parse("with.yaml", []byte(text))
		if err != nil {
			return
		}
		if _, err := resources.OfFiles(objects); err != nil {
			return
		}
		got, err := run(t, objects, pod, nil).Do(t.Context())
		if err != nil {
			return
		}
		for _, s := range got.Steps {
			if s.Outcome == "" || s.Name == "" {
				t.Errorf("%s gives %+v", text, s)
			}
		}
		if _, err := json.Marshal(got); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatMayBeUnknownIsNoErrorOfAReport(t *testing.T) {
	got, err := evaluate(t, validating("v", "{expression: object.spec.priority == 0}", "", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	about, _, err := manifest.Parse("pod.yaml", []byte(pod))
	if err != nil {
		t.Fatal(err)
	}
	for _, allow := range []bool{false, true} {
		var junit strings.Builder
		if err := got.Print(&junit, "junit", "CREATE", about[0], false, allow); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(junit.String(), "namespace team-a") || strings.Contains(junit.String(), "<error") == allow || (got.Verdict(allow) == nil) != allow {
			t.Errorf("--allow-unknown=%t: %v\n%s", allow, got.Verdict(allow), junit.String())
		}
	}
}

func TestAConversionThatIsNotPossibleNamesBothVersions(t *testing.T) {
	with := team + strings.ReplaceAll(validating("v", "{expression: 'true'}", "", ""), "apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]", "apiGroups: [apps], apiVersions: [v1beta2], operations: ['*'], resources: [deployments]")
	objects, _, err := manifest.Parse("with.yaml", []byte(with))
	if err != nil {
		t.Fatal(err)
	}
	_, err = run(t, objects, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {}, template: {}}}", func(r *chain.Run) {
		r.Resources.OfKind(schema.GroupVersionKind(r.Request.Kind)).Equivalents = []schema.GroupVersionResource{{Group: "apps", Version: "v1beta2", Resource: "deployments"}}
	}).Do(t.Context())
	if err == nil || !strings.Contains(err.Error(), "from apps/v1 to apps/v1beta2, which") {
		t.Errorf("%v", err)
	}
}
