// SPDX-License-Identifier: Apache-2.0

package sallyporttest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// A recorder is a testing.TB that records what is reported.
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

func mutate(f func(*corev1.Pod)) admission.Handler {
	return admission.Mutate(func(_ context.Context, p *corev1.Pod) error { f(p); return nil })
}

func validate(err error) admission.Handler {
	return admission.Validate(func(context.Context, *corev1.Pod) error { return err })
}

func answers(ops ...jsonpatch.Operation) admission.Handler {
	return admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Patched(ops), nil
	})
}

func addLabel(p *corev1.Pod) { p.Labels["team"] = "a" }

// prependContainer prepends a container, once.
func prependContainer(p *corev1.Pod) {
	if p.Spec.Containers[0].Name != "first" {
		p.Spec.Containers = append([]corev1.Container{{Name: "first", Image: "f"}}, p.Spec.Containers...)
	}
}

func TestRunReportsWhatIsWrongAndNothingElse(t *testing.T) {
	calls := 0
	set := func(path, value string) jsonpatch.Operation {
		return jsonpatch.Operation{Op: jsonpatch.Add, Path: path, Value: []byte(value)}
	}
	invalid := field.ErrorList{field.Required(field.NewPath("spec", "a"), ""), field.Required(field.NewPath("spec", "b"), "")}.ToAggregate()
	for _, tc := range []struct {
		name    string
		handler admission.Handler
		c       sallyporttest.Case
		want    []string // substrings, one for each report
	}{
		{"a mutator that does what is wanted", mutate(addLabel), sallyporttest.Case{Want: pod(addLabel)}, nil},
		{"an object in front of others", mutate(prependContainer), sallyporttest.Case{Want: pod(prependContainer)}, nil},
		{"an element that is removed", mutate(func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }), sallyporttest.Case{}, nil},
		{"YAML that is wanted", answers(set("/metadata/labels", `{"a":"b"}`)), sallyporttest.Case{
			NotIdempotent: true,
			Review:        sallyporttest.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}),
			Want:          "{kind: ConfigMap, apiVersion: v1, metadata: {name: c, labels: {a: b}}}",
		}, nil},
		{"another object", mutate(addLabel), sallyporttest.Case{Want: pod(nil)}, []string{"another object comes out:\n--- want\n+++ got\n"}},
		{"an invalid wish", mutate(addLabel), sallyporttest.Case{Want: 7}, []string{"cannot be compared: a int is wanted"}},
		{"a change that is not wanted", mutate(addLabel), sallyporttest.Case{Unchanged: true}, []string{"+    team: a"}},
		{"no change", validate(nil), sallyporttest.Case{Unchanged: true, Want: pod(nil)}, nil},

		{"a denial that is wanted", validate(invalid), sallyporttest.Case{Denied: "spec.a: Required", Code: 422, Causes: []string{"spec.a", "spec.b"}}, nil},
		{"a denial that is not wanted", validate(admission.Denyf("no")), sallyporttest.Case{}, []string{`denied, code 403: "no"; it should be allowed`}},
		{"another message", validate(admission.Denyf("no")), sallyporttest.Case{Denied: "yes"}, []string{`want "yes"`}},
		{"another code", validate(admission.Denyf("no")), sallyporttest.Case{Denied: "no", Code: 422}, []string{"code 403, want 422"}},
		{"other causes", validate(invalid), sallyporttest.Case{Causes: []string{"spec.b"}}, []string{`["spec.a" "spec.b"], want ["spec.b"]`}},
		{"no denial", validate(nil), sallyporttest.Case{Denied: "no"}, []string{`it is allowed; it should be denied with "no"`}},
		{"a denial without a status", admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
			return &admission.Response{}, nil
		}), sallyporttest.Case{Denied: "no"}, []string{"without a status"}},

		{"an error that is no denial", validate(errors.New("bad")), sallyporttest.Case{Denied: "bad"}, []string{"at fault, HTTP 500: bad (the error is a fault of the webhook: to deny the request, return admission.Deny(err))"}},
		{"a fault that is wanted", validate(admission.Fault(errors.New("a bug"))), sallyporttest.Case{Fault: "a bug"}, nil},
		{"a fault that is not wanted", validate(admission.Fault(errors.New("a bug"))), sallyporttest.Case{}, []string{"at fault, HTTP 500: a bug"}},
		{"another fault", validate(admission.Fault(errors.New("a bug"))), sallyporttest.Case{Fault: "full"}, []string{`does not hold "full"`}},
		{"no fault", validate(nil), sallyporttest.Case{Fault: "full"}, []string{`decides (allowed); it should be at fault with "full"`}},
		{"a handler that takes too long", admission.Validate(func(ctx context.Context, _ *corev1.Pod) error { <-ctx.Done(); return ctx.Err() }),
			sallyporttest.Case{Timeout: time.Millisecond}, []string{"at fault, HTTP 504"}},
		{"a fault when asked again", admission.Validate(func(context.Context, *corev1.Pod) error {
			if calls++; calls > 1 {
				return admission.Fault(errors.New("enough"))
			}
			return nil
		}), sallyporttest.Case{}, []string{"at fault when it is asked again: enough"}},

		{"warnings that are wanted", admission.Validate(func(ctx context.Context, _ *corev1.Pod) error { admission.Warn(ctx, "w"); return nil }),
			sallyporttest.Case{Warnings: []string{"w"}}, nil},
		{"other warnings", validate(nil), sallyporttest.Case{Warnings: []string{"w"}}, []string{`the warnings are [], want ["w"]`}},
		{"warnings that are cut off", admission.Validate(func(ctx context.Context, _ *corev1.Pod) error {
			admission.Warn(ctx, strings.Repeat("ä", 4097))
			return nil
		}), sallyporttest.Case{}, []string{"4097 characters"}},
		{"an audit annotation that is dropped", admission.Validate(func(ctx context.Context, _ *corev1.Pod) error {
			admission.Audit(ctx, "a/b", "c")
			return nil
		}), sallyporttest.Case{}, []string{`drops the audit annotation "a/b"`}},

		{"a patch that does not apply", answers(jsonpatch.Operation{Op: jsonpatch.Remove, Path: "/spec/none"}), sallyporttest.Case{}, []string{"the patch does not apply"}},
		{"a patch for a deletion", answers(set("/metadata/labels", `{}`)), sallyporttest.Case{Review: sallyporttest.Delete(pod(nil))}, []string{"request without an object, operation"}},
		{"a patch of the name", mutate(func(p *corev1.Pod) { p.Name = "other" }), sallyporttest.Case{}, []string{"changed metadata.name"}},
		{"not idempotent", mutate(func(p *corev1.Pod) { p.Labels["app"] += "!" }), sallyporttest.Case{}, []string{"-    app: web!\n+    app: web!!"}},
		{"a patch that changes nothing", answers(set("/metadata/labels/app", `"web"`)), sallyporttest.Case{}, []string{"a patch that changes nothing"}},
		{"not idempotent, and meant so", mutate(func(p *corev1.Pod) { p.Labels["app"] += "!" }), sallyporttest.Case{NotIdempotent: true}, nil},
		{"refuses its own result", admission.Mutate(func(_ context.Context, p *corev1.Pod) error {
			if p.Labels["team"] != "" {
				return admission.Denyf("again")
			}
			addLabel(p)
			return nil
		}), sallyporttest.Case{}, []string{`its own result it is denied, code 403: "again"`}},
		{"two answers", answersInTurns(), sallyporttest.Case{NotIdempotent: true, RefusesUnknownFields: true}, []string{"gets two answers"}},
		{"a handler that writes into the request", admission.HandlerFunc(func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
			req.Object.Raw[len(req.Object.Raw)-2] = ' '
			return admission.Allowed(), nil
		}), sallyporttest.Case{}, []string{"writes into the bytes", "writes into the bytes"}},

		{"rewrites a container", answers(jsonpatch.Operation{Op: jsonpatch.Replace, Path: "/spec/containers/0", Value: []byte(`{"name":"one","image":"c"}`)}), sallyporttest.Case{NotIdempotent: true}, []string{"is gone from spec.containers[0]"}},
		{"rewrites the spec", answers(set("/spec", `{"containers":[{"name":"one","image":"a"},{"name":"two","image":"b"}]}`)), sallyporttest.Case{NotIdempotent: true},
			[]string{"is gone from spec", "is gone from spec.containers[0]", "is gone from spec.containers[1]"}},
		{"leaves unknown fields with the wrong elements", answers(set("/spec/containers/0/name", `"two"`), set("/spec/containers/1/name", `"one"`)), sallyporttest.Case{NotIdempotent: true},
			[]string{"of spec.containers[0] is with another element", "of spec.containers[1] is with another element"}},
		{"refuses unknown fields", refusesUnknown(), sallyporttest.Case{}, []string{`it is denied, code 403: "unknown"`}},
		{"refuses unknown fields, and is meant to", refusesUnknown(), sallyporttest.Case{RefusesUnknownFields: true}, nil},

		{"an operation that the handler does not answer", validate(nil), sallyporttest.Case{Review: sallyporttest.Delete(pod(nil))}, []string{"does not answer DELETE"}},
		{"no object", validate(nil), sallyporttest.Case{Review: sallyporttest.Update(nil, pod(nil))}, []string{"an object is missing"}},
		{"a kind that is not known", validate(nil), sallyporttest.Case{Review: sallyporttest.Create(pod(nil), sallyporttest.InScheme(runtime.NewScheme()))}, []string{"or say InScheme"}},
		{"a file that is not there", validate(nil), sallyporttest.Case{Review: sallyporttest.FromFile("testdata/none.json")}, []string{"no such file"}},
		{"a review without a request", validate(nil), sallyporttest.Case{Review: sallyporttest.Recorded([]byte(`{}`))}, []string{"it has no request"}},
		{"an invalid review", validate(nil), sallyporttest.Case{Review: sallyporttest.Recorded([]byte(`[`))}, []string{"invalid Review"}},
		{"a recorded review", mutate(addLabelToAny), sallyporttest.Case{Review: sallyporttest.FromFile("testdata/pod.json")}, nil},
		{"version v1beta1", mutate(addLabel), sallyporttest.Case{Review: sallyporttest.Create(pod(nil), sallyporttest.InVersion("v1beta1")), Want: pod(addLabel)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls = 0
			if empty := (sallyporttest.Review{}); fmt.Sprint(tc.c.Review) == fmt.Sprint(empty) {
				tc.c.Review = sallyporttest.Create(pod(nil))
			}
			r := &recorder{}
			sallyporttest.Run(r, tc.handler, tc.c)
			if len(r.problems) != len(tc.want) {
				t.Fatalf("got %d reports, want %d:\n%s", len(r.problems), len(tc.want), strings.Join(r.problems, "\n"))
			}
			for i, want := range tc.want {
				if !strings.Contains(r.problems[i], want) {
					t.Errorf("report %d has no %q:\n%s", i+1, want, r.problems[i])
				}
			}
		})
	}
}

func addLabelToAny(p *corev1.Pod) { p.Labels = map[string]string{"team": "a"} }

func answersInTurns() admission.Handler {
	turn := 0
	return mutate(func(p *corev1.Pod) { turn++; p.Labels["turn"] = fmt.Sprint(turn) })
}

// refusesUnknown returns a handler that changes objects and denies those with unknown fields.
func refusesUnknown() admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		if strings.Contains(string(req.Object.Raw), "Unknown") {
			return admission.DeniedResponse("unknown"), nil
		}
		return mutate(addLabel).Handle(ctx, req)
	})
}

func TestRunWebhookReportsADefinitionThatIsWrong(t *testing.T) {
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "CREATE")
	patch := answers(jsonpatch.Operation{Op: jsonpatch.Add, Path: "/spec/nodeName", Value: []byte(`"n"`)})
	for _, tc := range []struct {
		name    string
		webhook admission.Webhook
		want    string
	}{
		{"one that fits", admission.Mutating("a.example.com", pods, patch), ""},
		{"all resources and their sub-resources", admission.Mutating("a.example.com", admission.Rules(schema.GroupVersionResource{Group: "*", Version: "*", Resource: "*/*"}, "*"), patch), ""},
		{"a patch from a validating one", admission.Validating("a.example.com", pods, patch), "handler of a validating webhook returned a patch"},
		{"rules for others", admission.Mutating("a.example.com", admission.Rules(corev1.SchemeGroupVersion.WithResource("services")), patch), "would not ask it about CREATE of pods in v1"},
		{"rules for a sub-resource", admission.Mutating("a.example.com", admission.Rules(corev1.SchemeGroupVersion.WithResource("pods/status")), patch), "would not ask it"},
		{"rules for another operation", admission.Mutating("a.example.com", admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "UPDATE"), patch), "would not ask it"},
		{"rules for things of the cluster", scoped(admission.Mutating("a.example.com", pods, patch), admissionregistrationv1.ClusterScope), "would not ask it"},
		{"rules for things in namespaces", scoped(admission.Mutating("a.example.com", pods, patch), admissionregistrationv1.NamespacedScope), ""},
		{"rules for another version", admission.Mutating("a.example.com", admission.Rules(schema.GroupVersionResource{Version: "v2", Resource: "pods"}), patch), "would convert the object of the CREATE, and ask about pods of v2"},
		{"rules for exactly another version", exactly(admission.Mutating("a.example.com", admission.Rules(schema.GroupVersionResource{Version: "v2", Resource: "pods"}), patch)), "would not ask it"},
		{"no name", admission.Mutating("", pods, patch), "the webhook is not valid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &recorder{}
			sallyporttest.RunWebhook(r, tc.webhook, sallyporttest.Case{Review: sallyporttest.Create(pod(nil)), NotIdempotent: true})
			got := strings.Join(r.problems, "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func scoped(w admission.Webhook, scope admissionregistrationv1.ScopeType) admission.Webhook {
	w.Rules[0].Scope = &scope
	return w
}

func exactly(w admission.Webhook) admission.Webhook {
	w.MatchPolicy = admissionregistrationv1.Exact
	return w
}

// A tree of maps accepts Go ints without a conversion.
func TestRunTakesAnIntInATreeOfMaps(t *testing.T) {
	recorded := &recorder{TB: t}
	handler := admission.Chain(
		admission.Mutate(func(_ context.Context, u *unstructured.Unstructured) error {
			u.Object["spec"] = map[string]any{"replicas": 3}
			return nil
		}),
		admission.Mutate(func(_ context.Context, u *unstructured.Unstructured) error {
			u.SetLabels(map[string]string{"size": "3"})
			return nil
		}))
	result := sallyporttest.Run(recorded, handler, sallyporttest.Case{
		Review: sallyporttest.Create(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Shelf", "metadata": map[string]any{"name": "a"},
		}}, sallyporttest.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "shelves"})),
		Want: `{"apiVersion":"example.com/v1","kind":"Shelf","metadata":{"name":"a","labels":{"size":"3"}},"spec":{"replicas":3}}`,
	})
	if len(recorded.problems) > 0 {
		t.Errorf("%q\n%s", recorded.problems, result.Object)
	}
}

func TestReviewsSayWhatTheyAreToldTo(t *testing.T) {
	see := func(r sallyporttest.Review) *admissionv1.AdmissionRequest {
		var seen *admissionv1.AdmissionRequest
		sallyporttest.Run(t, admission.HandlerFunc(func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
			seen = req
			return admission.Allowed(), nil
		}), sallyporttest.Case{Review: r})
		if seen == nil {
			t.Fatal("the handler was not asked")
		}
		return seen
	}

	r := see(sallyporttest.Update(pod(nil), pod(addLabel), sallyporttest.AsUser("jane", "dev"), sallyporttest.DryRun(), sallyporttest.ForSubresource("status"),
		sallyporttest.With(func(r *admissionv1.AdmissionRequest) { r.UserInfo.UID = "7" })))
	if r.Operation != "UPDATE" || r.Name != "web" || r.Namespace != "team-a" || r.SubResource != "status" || r.RequestSubResource != "status" ||
		r.UserInfo.Username != "jane" || r.UserInfo.Groups[0] != "dev" || r.UserInfo.UID != "7" || !*r.DryRun || r.Resource.Resource != "pods" ||
		r.Kind != (metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}) || *r.RequestKind != r.Kind || !strings.Contains(string(r.Options.Raw), "UpdateOptions") {
		t.Errorf("an update is %+v", r)
	}
	if old, now := string(r.OldObject.Raw), string(r.Object.Raw); strings.Contains(old, "team:") || !strings.Contains(now, `"team":"a"`) || !strings.Contains(now, `"kind":"Pod"`) {
		t.Errorf("the objects of an update are %s and %s", old, now)
	}
	r = see(sallyporttest.Delete(pod(nil)))
	if r.Operation != "DELETE" || len(r.Object.Raw) > 0 || len(r.OldObject.Raw) == 0 || *r.DryRun {
		t.Errorf("a deletion is %+v", r)
	}
	r = see(sallyporttest.Connect(&corev1.PodAttachOptions{Container: "c"}, sallyporttest.Named("team-a", "web"),
		sallyporttest.ForResource(corev1.SchemeGroupVersion.WithResource("pods")), sallyporttest.ForSubresource("attach")))
	if r.Operation != "CONNECT" || r.Kind.Kind != "PodAttachOptions" || r.Resource.Resource != "pods" || r.SubResource != "attach" || r.Name != "web" || len(r.Options.Raw) > 0 {
		t.Errorf("a connection is %+v", r)
	}
	r = see(sallyporttest.Update(&autoscalingv1.Scale{}, &autoscalingv1.Scale{},
		sallyporttest.ForResource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}), sallyporttest.ForSubresource("scale")))
	if r.Kind.Group != "autoscaling" || r.Resource.Group != "apps" {
		t.Errorf("a scale is %+v", r)
	}
}

func TestRunReturnsWhatCameOut(t *testing.T) {
	result := sallyporttest.Run(t, admission.Named("labels", mutate(addLabel)), sallyporttest.Case{Review: sallyporttest.Create(pod(nil))})
	if !strings.Contains(string(result.Object), `"team":"a"`) || len(result.Response.Origins) != 1 || result.Response.Origins[0].Source != "labels" {
		t.Errorf("got %s, %+v", result.Object, result.Response)
	}
}
