// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/sallyport-io/sallyport/admission"
)

const podJSON = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"team","labels":{"app":"x"}},` +
	`"spec":{"newField":9007199254740993,"containers":[{"name":"main","image":"i","newToo":{"a":1}}]}}`

func podRequest(operation admissionv1.Operation) *admissionv1.AdmissionRequest {
	req := &admissionv1.AdmissionRequest{
		UID: "u", Operation: operation, Name: "a", Namespace: "team",
		Kind:     metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
	}
	req.UserInfo.Username = "jane"
	if operation != admissionv1.Delete {
		req.Object.Raw = []byte(podJSON)
	}
	if operation != admissionv1.Create {
		req.OldObject.Raw = []byte(strings.Replace(podJSON, `"image":"i"`, `"image":"old"`, 1))
	}
	return req
}

// requestFor asks about an object, whose kind it takes from it.
func requestFor(t *testing.T, operation admissionv1.Operation, raw string) *admissionv1.AdmissionRequest {
	t.Helper()
	var kind metav1.TypeMeta
	if err := json.Unmarshal([]byte(raw), &kind); err != nil {
		t.Fatal(err)
	}
	req := &admissionv1.AdmissionRequest{UID: "u", Operation: operation, Kind: metav1.GroupVersionKind(kind.GroupVersionKind())}
	req.Object.Raw = []byte(raw)
	return req
}

func handle(t *testing.T, h admission.Handler, req *admissionv1.AdmissionRequest) *admission.Response {
	t.Helper()
	resp, err := h.Handle(t.Context(), req)
	if err != nil {
		t.Fatalf("fault: %v", err)
	}
	if resp == nil {
		t.Fatal("no response")
	}
	return resp
}

func allowed(t *testing.T, h admission.Handler, req *admissionv1.AdmissionRequest) *admission.Response {
	t.Helper()
	resp := handle(t, h, req)
	if !resp.Allowed {
		t.Fatalf("denied: %+v", resp.Status)
	}
	return resp
}

func apply(t *testing.T, raw []byte, resp *admission.Response) map[string]any {
	t.Helper()
	patch, err := jsonpatchv4.DecodePatch(resp.Patch.AppendJSON(nil))
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply(raw)
	if err != nil {
		t.Fatalf("%s: %v", resp.Patch.AppendJSON(nil), err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestMutateTouchesOnlyWhatChanged(t *testing.T) {
	req := podRequest(admissionv1.Create)
	resp := allowed(t, admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
		pod.Spec.Containers = append([]corev1.Container{{Name: "first", Image: "f"}}, pod.Spec.Containers...)
		pod.Labels["team"] = "a"
		return nil
	}), req)
	got := apply(t, req.Object.Raw, resp)
	spec := got["spec"].(map[string]any)
	if spec["newField"] != json.Number("9007199254740993") {
		t.Errorf("an unknown number became %v", spec["newField"])
	}
	containers := spec["containers"].([]any)
	if first := containers[0].(map[string]any); first["name"] != "first" || first["newToo"] != nil {
		t.Errorf("the new container is %v", first)
	}
	if second := containers[1].(map[string]any); second["name"] != "main" || second["newToo"] == nil {
		t.Errorf("the unknown field did not stay with its container: %v", second)
	}
	if labels := got["metadata"].(map[string]any)["labels"]; !reflect.DeepEqual(labels, map[string]any{"app": "x", "team": "a"}) {
		t.Errorf("labels are %v", labels)
	}
	if string(req.Object.Raw) != podJSON {
		t.Error("the request was changed")
	}
}

func TestMutateThatChangesNothingHasNoPatch(t *testing.T) {
	for _, tc := range []struct {
		name   string
		mutate admission.Handler
	}{
		{"a pod", admission.Mutate(func(context.Context, *corev1.Pod) error { return nil })},
		{"an unstructured object", admission.Mutate(func(context.Context, *unstructured.Unstructured) error { return nil })},
		{"metadata alone", admission.Mutate(func(context.Context, *metav1.PartialObjectMetadata) error { return nil })},
		{"a kind that is taken away comes back", admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
			pod.TypeMeta = metav1.TypeMeta{}
			return nil
		})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if resp := allowed(t, tc.mutate, podRequest(admissionv1.Create)); len(resp.Patch) > 0 {
				t.Errorf("patch %s", resp.Patch.AppendJSON(nil))
			}
		})
	}
}

func TestMutateUnstructuredIsExact(t *testing.T) {
	const raw = `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"a"},"spec":{"big":9007199254740993,"huge":123456789012345678901234567890,"ratio":1.10,"count":1}}`
	req := requestFor(t, admissionv1.Create, raw)
	resp := allowed(t, admission.Mutate(func(_ context.Context, o *unstructured.Unstructured) error {
		if big, ok, err := unstructured.NestedInt64(o.Object, "spec", "big"); !ok || err != nil || big != 9007199254740993 {
			return fmt.Errorf("big is %v, %v, %w", big, ok, err)
		}
		return unstructured.SetNestedField(o.Object, int64(9007199254740992), "spec", "count")
	}), req)
	if got, want := string(resp.Patch.AppendJSON(nil)), `[{"op":"add","path":"/spec/count","value":9007199254740992}]`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestTypedHandlersSeeTheRequest(t *testing.T) {
	type seen struct{ user, old, options string }
	look := func(ctx context.Context) (s seen) {
		s.user = admission.RequestFrom(ctx).UserInfo.Username
		if old, err := admission.OldFrom[*corev1.Pod](ctx); err != nil {
			s.old = err.Error()
		} else {
			s.old = old.Spec.Containers[0].Image
		}
		if options, err := admission.OptionsFrom[*metav1.UpdateOptions](ctx); err != nil {
			s.options = err.Error()
		} else {
			s.options = options.FieldManager
		}
		return s
	}
	var got seen
	req := podRequest(admissionv1.Update)
	req.Options.Raw = []byte(`{"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions","fieldManager":"kubectl"}`)
	want := seen{"jane", "old", "kubectl"}
	for name, handler := range map[string]admission.Handler{
		"a mutator": admission.Mutate(func(ctx context.Context, _ *corev1.Pod) error { got = look(ctx); return nil }),
		"a mutator with a derived context": admission.Mutate(func(ctx context.Context, _ *corev1.Pod) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			got = look(ctx)
			return nil
		}),
		"a validator": admission.Validate(func(ctx context.Context, _ *corev1.Pod) error { got = look(ctx); return nil }),
		"a validator of updates": admission.ValidateEach(admission.Checks[*corev1.Pod]{Update: func(ctx context.Context, _, _ *corev1.Pod) error {
			got = look(ctx)
			return nil
		}}),
	} {
		got = seen{}
		allowed(t, handler, req)
		if got != want {
			t.Errorf("%s sees %+v", name, got)
		}
	}

	allowed(t, admission.Mutate(func(ctx context.Context, _ *corev1.Pod) error { got = look(ctx); return nil }), podRequest(admissionv1.Create))
	if !strings.Contains(got.old, "no old object") || !strings.Contains(got.options, "no options") {
		t.Errorf("where there is none: %+v", got)
	}
	if req := admission.RequestFrom(t.Context()); req != nil {
		t.Errorf("a request out of nowhere: %v", req)
	}
	if _, err := admission.OldFrom[*corev1.Pod](t.Context()); err == nil {
		t.Error("an old object out of nowhere")
	}
	admission.Warn(t.Context(), "lost")
	admission.Audit(t.Context(), "a", "b")
}

func TestWarningsAndAuditAnnotationsGoWithEveryDecision(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
	}{{"allowed", nil}, {"denied", admission.Denyf("no")}} {
		t.Run(tc.name, func(t *testing.T) {
			say := func(ctx context.Context, _ *corev1.Pod) error {
				admission.Warn(ctx, "one")
				admission.Warn(ctx, "two of 2")
				admission.Audit(ctx, "because", "of that")
				return tc.err
			}
			for _, handler := range []admission.Handler{admission.Mutate(say), admission.Validate(say)} {
				resp := handle(t, handler, podRequest(admissionv1.Create))
				if resp.Allowed != (tc.err == nil) || !reflect.DeepEqual(resp.Warnings, []string{"one", "two of 2"}) ||
					!reflect.DeepEqual(resp.AuditAnnotations, map[string]string{"because": "of that"}) {
					t.Errorf("got %+v", resp)
				}
			}
		})
	}
}

func TestErrorsOfTypedHandlers(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	invalid := field.Invalid(field.NewPath("spec", "a"), 1, "must be 2")
	for _, tc := range []struct {
		name    string
		err     error
		code    int32 // 0 means a fault
		reason  metav1.StatusReason
		causes  int
		message string
	}{
		{"a denial", admission.Deny(errors.New("say why")), 403, metav1.StatusReasonForbidden, 0, "say why"},
		{"a denial with a format", admission.Denyf("say %s", "why"), 403, metav1.StatusReasonForbidden, 0, "say why"},
		{"a wrapped denial", fmt.Errorf("at: %w", admission.Denyf("b")), 403, metav1.StatusReasonForbidden, 0, "at: b"},
		{"joined denials", errors.Join(admission.Denyf("a"), admission.Denyf("b")), 403, metav1.StatusReasonForbidden, 0, "a\nb"},
		{"any other error", errors.New("x"), 0, "", 0, ""},
		{"a denial beside another error", errors.Join(admission.Denyf("a"), errors.New("b")), 0, "", 0, ""},
		{"a field error", invalid, 422, metav1.StatusReasonInvalid, 1, "spec.a"},
		{"a list of field errors", field.ErrorList{invalid, field.Required(field.NewPath("b"), "")}.ToAggregate(), 422, metav1.StatusReasonInvalid, 2, "b: Required"},
		{"joined field errors", errors.Join(invalid, field.Required(field.NewPath("b"), "")), 422, metav1.StatusReasonInvalid, 2, "b: Required"},
		{"a denial with field errors", admission.Deny(field.ErrorList{invalid}.ToAggregate()), 422, metav1.StatusReasonInvalid, 1, "spec.a"},
		{"wrapped field errors", fmt.Errorf("w: %w", invalid), 403, metav1.StatusReasonForbidden, 0, "w: spec.a"},
		{"field errors and denials", errors.Join(invalid, admission.Denyf("c")), 403, metav1.StatusReasonForbidden, 0, "c"},
		{"field errors among others", errors.Join(invalid, errors.New("c")), 0, "", 0, ""},
		{"a denial with an API status", admission.Deny(apierrors.NewConflict(pods, "a", errors.New("x"))), 409, metav1.StatusReasonConflict, 0, "x"},
		{"a denial with a status that clients get", admission.Deny(apierrors.NewForbidden(pods, "a", errors.New("x"))), 403, metav1.StatusReasonForbidden, 0, "x"},
		{"a denial with a wrapped API status", admission.Deny(fmt.Errorf("w: %w", apierrors.NewTooManyRequests("later", 3))), 429, metav1.StatusReasonTooManyRequests, 0, "later"},
		{"a denial with an API status without a message", admission.Deny(&apierrors.StatusError{ErrStatus: metav1.Status{Code: 418}}), 418, "", 0, ""},
		{"an API status", apierrors.NewConflict(pods, "a", errors.New("x")), 0, "", 0, ""},
		{"a client that may not", fmt.Errorf("quota: %w", apierrors.NewForbidden(pods, "a", errors.New("x"))), 0, "", 0, ""},
		{"a client that is not known", apierrors.NewUnauthorized("x"), 0, "", 0, ""},
		{"a client that finds nothing", apierrors.NewNotFound(pods, "a"), 0, "", 0, ""},
		{"a client that asks too much", apierrors.NewTooManyRequests("later", 3), 0, "", 0, ""},
		{"a refused connection", refusedConnection(t), 0, "", 0, ""},
		{"a cache that is not started", &cache.ErrCacheNotStarted{}, 0, "", 0, ""},
		{"an internal API status", apierrors.NewInternalError(errors.New("x")), 0, "", 0, ""},
		{"an API server that is away", apierrors.NewServiceUnavailable("x"), 0, "", 0, ""},
		{"a fault", admission.Fault(errors.New("x")), 0, "", 0, ""},
		{"a wrapped fault", fmt.Errorf("w: %w", admission.Fault(errors.New("x"))), 0, "", 0, ""},
		{"a fault among decisions", errors.Join(invalid, admission.Fault(errors.New("x"))), 0, "", 0, ""},
		{"a denial that is marked as a fault", admission.Fault(admission.Denyf("x")), 0, "", 0, ""},
		{"a denial of a deadline", admission.Deny(context.DeadlineExceeded), 0, "", 0, ""},
		{"an API status that is marked as a fault", admission.Fault(apierrors.NewNotFound(pods, "a")), 0, "", 0, ""},
		{"a fault that passes", admission.Unavailable(errors.New("x"), time.Second), 0, "", 0, ""},
		{"a deadline", fmt.Errorf("lookup: %w", context.DeadlineExceeded), 0, "", 0, ""},
		{"a call that was given up", context.Canceled, 0, "", 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fail := func(context.Context, *corev1.Pod) error { return tc.err }
			for _, handler := range []admission.Handler{admission.Mutate(fail), admission.Validate(fail)} {
				resp, err := handler.Handle(t.Context(), podRequest(admissionv1.Create))
				if tc.code == 0 {
					if err == nil || !errors.Is(err, tc.err) {
						t.Errorf("got %+v, %v; want a fault", resp, err)
					}
					continue
				}
				if err != nil || resp.Allowed {
					t.Fatalf("got %+v, %v; want a denial", resp, err)
				}
				status := resp.Status
				if status.Code != tc.code || status.Reason != tc.reason || !strings.Contains(status.Message, tc.message) || status.Status != metav1.StatusFailure {
					t.Errorf("got %+v", status)
				}
				if causes := status.Details; tc.causes > 0 && (causes == nil || len(causes.Causes) != tc.causes || causes.Kind != "Pod" || causes.Name != "a") {
					t.Errorf("details are %+v", causes)
				}
			}
		})
	}
	if admission.Fault(nil) != nil || admission.Deny(nil) != nil {
		t.Error("no error became one")
	}
}

// refusedConnection is what a client returns whose server is away.
func refusedConnection(t *testing.T) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + address)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("the connection is not refused")
	}
	return fmt.Errorf("looking: %w", err)
}

func TestErrorsDenyAsInControllerRuntime(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	invalid := field.Invalid(field.NewPath("spec", "a"), 1, "must be 2")
	for _, tc := range []struct {
		name string
		err  error
		code int32 // 0 means a fault
	}{
		{"any error", errors.New("say why"), 403},
		{"a wrapped one", fmt.Errorf("at: %w", errors.New("b")), 403},
		{"field errors", invalid, 422},
		{"field errors among others", errors.Join(invalid, errors.New("c")), 403},
		{"a status about the object", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", field.ErrorList{invalid}), 422},
		{"a conflict", fmt.Errorf("w: %w", apierrors.NewConflict(pods, "a", errors.New("x"))), 409},
		{"a bad request", apierrors.NewBadRequest("x"), 400},
		{"a denial with a status that clients get", admission.Deny(apierrors.NewForbidden(pods, "a", errors.New("x"))), 403},
		{"a client that may not", fmt.Errorf("quota: %w", apierrors.NewForbidden(pods, "a", errors.New("x"))), 0},
		{"a client that is not known", apierrors.NewUnauthorized("x"), 0},
		{"a client that finds nothing", apierrors.NewNotFound(pods, "a"), 0},
		{"a watch that is too old", apierrors.NewResourceExpired("x"), 0},
		{"a client that asks too much", apierrors.NewTooManyRequests("later", 3), 0},
		{"an API server that is away", apierrors.NewServiceUnavailable("x"), 0},
		{"an outage among denials", errors.Join(invalid, apierrors.NewTimeoutError("x", 1)), 0},
		{"a refused connection", refusedConnection(t), 0},
		{"a cache that is not started", fmt.Errorf("w: %w", &cache.ErrCacheNotStarted{}), 0},
		{"a type that the cache does not hold", &cache.ErrResourceNotCached{}, 0},
		{"a kind that is not installed", &meta.NoKindMatchError{}, 0},
		{"a fault", admission.Fault(errors.New("x")), 0},
		{"a deadline", fmt.Errorf("lookup: %w", context.DeadlineExceeded), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fail := failing{tc.err}
			for _, handler := range []admission.Handler{
				admission.MutateWith(fail), admission.ValidateWith(fail), admission.Validate(fail.Default, admission.ErrorsDeny()),
			} {
				resp, err := handler.Handle(t.Context(), podRequest(admissionv1.Create))
				switch {
				case tc.code == 0 && (err == nil || !errors.Is(err, tc.err)):
					t.Errorf("got %+v, %v; want a fault", resp, err)
				case tc.code != 0 && (err != nil || resp.Allowed || resp.Status.Code != tc.code):
					t.Errorf("got %+v, %v; want a denial with %d", resp, err, tc.code)
				}
			}
		})
	}
}

// failing is a defaulter and validator in the manner of controller-runtime.
type failing struct{ err error }

func (f failing) Default(context.Context, *corev1.Pod) error { return f.err }
func (f failing) ValidateCreate(context.Context, *corev1.Pod) ([]string, error) {
	return nil, f.err
}
func (f failing) ValidateUpdate(context.Context, *corev1.Pod, *corev1.Pod) ([]string, error) {
	return nil, f.err
}
func (f failing) ValidateDelete(context.Context, *corev1.Pod) ([]string, error) { return nil, f.err }

func TestObjectsThatCannotBeReadAreRefused(t *testing.T) {
	const secret = "hunter2"
	pods := admission.Mutate(func(context.Context, *corev1.Pod) error { return nil })
	request := func(change func(req *admissionv1.AdmissionRequest)) *admissionv1.AdmissionRequest {
		req := podRequest(admissionv1.Create)
		change(req)
		return req
	}
	raw := func(raw string) *admissionv1.AdmissionRequest {
		return request(func(req *admissionv1.AdmissionRequest) { req.Object.Raw = []byte(raw) })
	}
	for _, tc := range []struct {
		name    string
		handler admission.Handler
		req     *admissionv1.AdmissionRequest
		want    []string
	}{
		{"no object", pods, request(func(req *admissionv1.AdmissionRequest) { req.Object.Raw = nil }), []string{"no object"}},
		{"another kind", pods, request(func(req *admissionv1.AdmissionRequest) {
			req.Kind = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		}),
			[]string{"apps/v1 Deployment", "Pod", "rules"}},
		{"another version", admission.Mutate(func(context.Context, *corev1.Pod) error { return nil }, admission.ForKind(corev1.SchemeGroupVersion.WithKind("Pod"))),
			request(func(req *admissionv1.AdmissionRequest) { req.Kind.Version = "v2" }), []string{"v2 Pod", "v1 Pod"}},
		{"a string for a list", pods, raw(`{"spec":{"containers":"` + secret + `"}}`), []string{"/spec/containers", "at byte 22", "expected a list, found a string"}},
		{"an object for a string", pods, raw(`{"spec":{"containers":[{"name":"a"},{"image":{"a":"` + secret + `"}}]}}`), []string{"/spec/containers/1/image", "expected a string, found an object"}},
		{"a number for a map", pods, raw(`{"metadata":{"labels":5}}`), []string{"/metadata/labels", "expected an object, found a number"}},
		{"a fraction for an integer", pods, raw(`{"spec":{"priority":1.5}}`), []string{"/spec/priority", "expected an integer of type int32"}},
		{"an integer out of range", pods, raw(`{"spec":{"priority":3000000000}}`), []string{"/spec/priority", "expected an integer of type int32"}},
		{"an invalid quantity", pods, raw(`{"spec":{"overhead":{"cpu":"` + secret + `"}}}`), []string{"/spec/overhead/cpu", "expected a Quantity"}},
		{"an invalid time", pods, raw(`{"metadata":{"creationTimestamp":"` + secret + `"}}`), []string{"/metadata/creationTimestamp", "expected a Time"}},
		{"no JSON object", pods, raw(`["` + secret + `"]`), []string{"the whole", "expected an object, found a list"}},
		{"no JSON object for a tree", admission.Mutate(func(context.Context, *unstructured.Unstructured) error { return nil }), raw(`"` + secret + `"`), []string{"not a JSON object"}},
		{"a number that is too large for a tree", admission.Mutate(func(context.Context, *unstructured.Unstructured) error { return nil }), raw(`{"a":1e999}`), []string{"at byte 5", "out of range"}},
		{"an old object that is missing", admission.ValidateEach(admission.Checks[*corev1.Pod]{Delete: func(context.Context, *corev1.Pod) error { return nil }}),
			request(func(req *admissionv1.AdmissionRequest) { req.Operation = admissionv1.Delete }), []string{"no old object"}},
		{"an old object that a handler asks for in vain", admission.Validate(func(ctx context.Context, _ *corev1.Pod) error {
			_, err := admission.OldFrom[*corev1.Pod](ctx)
			return err
		}), podRequest(admissionv1.Create), []string{"no old object"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp := handle(t, tc.handler, tc.req)
			if resp.Allowed || resp.Status.Code != http.StatusBadRequest || resp.Status.Reason != metav1.StatusReasonBadRequest {
				t.Fatalf("got %+v %+v", resp, resp.Status)
			}
			for _, want := range tc.want {
				if !strings.Contains(resp.Status.Message, want) {
					t.Errorf("nothing of %q in %q", want, resp.Status.Message)
				}
			}
			if strings.Contains(resp.Status.Message, secret) {
				t.Errorf("content in %q", resp.Status.Message)
			}
		})
	}
}

func TestValidateEachCallsTheFunctionOfTheOperation(t *testing.T) {
	var called string
	checks := admission.Checks[*corev1.Pod]{
		Create: func(_ context.Context, pod *corev1.Pod) error {
			called = "create " + pod.Spec.Containers[0].Image
			return nil
		},
		Update: func(_ context.Context, old, pod *corev1.Pod) error {
			called = "update " + old.Spec.Containers[0].Image + " " + pod.Spec.Containers[0].Image
			return nil
		},
		Delete: func(_ context.Context, pod *corev1.Pod) error {
			called = "delete " + pod.Spec.Containers[0].Image
			return nil
		},
	}
	for operation, want := range map[admissionv1.Operation]string{
		admissionv1.Create: "create i", admissionv1.Update: "update old i", admissionv1.Delete: "delete old",
	} {
		allowed(t, admission.ValidateEach(checks), podRequest(operation))
		if called != want {
			t.Errorf("%s: called %q", operation, called)
		}
	}
	for _, handler := range []admission.Handler{
		admission.ValidateEach(checks),
		admission.ValidateEach(admission.Checks[*corev1.Pod]{Create: checks.Create}),
	} {
		if resp, err := handler.Handle(t.Context(), podRequest(admissionv1.Connect)); err == nil || !strings.Contains(err.Error(), "no function for CONNECT") {
			t.Errorf("an operation without a function: %+v, %v", resp, err)
		}
	}
	if resp, err := admission.ValidateEach(checks).Handle(t.Context(), podRequest("PATCH")); err == nil {
		t.Errorf("an unknown operation: %+v", resp)
	}
}

func TestSubResourcesAndConnect(t *testing.T) {
	var got string
	for _, tc := range []struct {
		name    string
		handler admission.Handler
		op      admissionv1.Operation
		raw     string
		want    string
	}{
		{"scale", admission.Mutate(func(_ context.Context, s *autoscalingv1.Scale) error { got = fmt.Sprint(s.Spec.Replicas); return nil }),
			admissionv1.Update, `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":3}}`, "3"},
		{"eviction", admission.ValidateEach(admission.Checks[*policyv1.Eviction]{Create: func(_ context.Context, e *policyv1.Eviction) error { got = e.Name; return nil }}),
			admissionv1.Create, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"gone"}}`, "gone"},
		{"binding", admission.Validate(func(_ context.Context, b *corev1.Binding) error { got = b.Target.Name; return nil }),
			admissionv1.Create, `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"a"},"target":{"name":"node-1"}}`, "node-1"},
		{"status", admission.Validate(func(_ context.Context, d *appsv1.Deployment) error { got = fmt.Sprint(d.Status.Replicas); return nil }),
			admissionv1.Update, `{"apiVersion":"apps/v1","kind":"Deployment","status":{"replicas":2}}`, "2"},
		{"attach", admission.ValidateEach(admission.Checks[*corev1.PodAttachOptions]{Connect: func(_ context.Context, o *corev1.PodAttachOptions) error { got = o.Container; return nil }}),
			admissionv1.Connect, `{"apiVersion":"v1","kind":"PodAttachOptions","container":"main","stdin":true}`, "main"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got = ""
			allowed(t, tc.handler, requestFor(t, tc.op, tc.raw))
			if got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestMutateHasNothingToDoOnDelete(t *testing.T) {
	resp := allowed(t, admission.Mutate(func(context.Context, *corev1.Pod) error { t.Error("called"); return nil }), podRequest(admissionv1.Delete))
	if len(resp.Patch) > 0 {
		t.Errorf("patch %s", resp.Patch)
	}
}

func TestPanicsPass(t *testing.T) {
	defer func() {
		if value := recover(); value != "boom" {
			t.Errorf("recovered %v", value)
		}
	}()
	_, _ = admission.Validate(func(context.Context, *corev1.Pod) error { panic("boom") }).Handle(t.Context(), podRequest(admissionv1.Create))
}

func TestRulesAreComparedWithWhatTheHandlerReads(t *testing.T) {
	pods := admission.Validate(func(context.Context, *corev1.Pod) error { return nil })
	deployments := admission.Validate(func(context.Context, *appsv1.Deployment) error { return nil })
	trees := admission.Validate(func(context.Context, *unstructured.Unstructured) error { return nil })
	exact := func(gvk schema.GroupVersionKind) admission.Handler {
		return admission.Validate(func(context.Context, *unstructured.Unstructured) error { return nil }, admission.ForKind(gvk))
	}
	for _, tc := range []struct {
		name             string
		group, resources string
		handler          admission.Handler
		want             string // of the error; empty for none
	}{
		{"the same kind", "", "pods", pods, ""},
		{"a sub-resource of another kind", "", "pods/eviction", pods, "pods/eviction are of kind Eviction, the handler reads v1.Pod: it would refuse each of them; let it take a *policyv1.Eviction"},
		{"a sub-resource of the kind", "", "pods/eviction", admission.Validate(func(context.Context, *policyv1.Eviction) error { return nil }), ""},
		{"a sub-resource of its parent's kind", "", "pods/status,pods/ephemeralcontainers", pods, ""},
		{"a sub-resource of another parent's kind", "", "services/status", pods, "services/status are of kind Service"},
		{"a scale", "apps", "deployments/scale", deployments, "let it take a *autoscalingv1.Scale"},
		{"a scale of a kind that is not known", "example.com", "crontabs/scale", pods, "let it take a *autoscalingv1.Scale"},
		{"a sub-resource that is not known", "", "pods/fixed", deployments, ""},
		{"all sub-resources", "", "pods/*", pods, ""},
		{"a wildcard", "", "*", pods, ""},
		{"any group", "*", "pods", deployments, ""},
		{"a resource that is not known", "example.com", "crontabs", pods, ""},
		{"anything goes", "", "services", trees, ""},
		{"an irregular plural", "networking.k8s.io", "networkpolicies", admission.Mutate(func(context.Context, *networkingv1.NetworkPolicy) error { return nil }), ""},
		{"a plural like the singular", "", "endpoints", admission.Mutate(func(context.Context, *corev1.Endpoints) error { return nil }), ""}, //nolint:staticcheck // it is there
		{"another kind", "", "pods,services", pods, "rules[0].resources: services are of kind Service, the handler reads v1.Pod"},
		{"another kind in another group", "apps", "statefulsets", deployments, "statefulsets are of kind StatefulSet, the handler reads v1.Deployment"},
		{"one of a chain", "", "pods", admission.Chain(trees, admission.Named("n", deployments)), "pods are of kind Pod, the handler reads v1.Deployment"},
		{"another kind that is asked for", "", "pods", exact(corev1.SchemeGroupVersion.WithKind("Service")), "pods are of kind Pod, the handler reads v1 Service"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rules := admission.Rules(schema.GroupVersionResource{Group: tc.group, Version: "v1"})
			rules[0].Resources = strings.Split(tc.resources, ",")
			webhook := admission.Mutating("check.pods.example.com", rules, tc.handler)
			err := webhook.Problems(clientscheme.Scheme)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestProblemsInHandlersAreReportedWithTheDefinition(t *testing.T) {
	rules := func(operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return admission.Rules(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, operations...)
	}
	check := func(context.Context, *corev1.Pod) error { return nil }
	creates := admission.ValidateEach(admission.Checks[*corev1.Pod]{Create: check})
	const name = "check.pods.example.com"
	for _, tc := range []struct {
		name    string
		webhook admission.Webhook
		want    string // nothing: accepted
	}{
		{"create and update by default", admission.Validating(name, rules(), admission.Validate(check)), ""},
		{"delete without a function", admission.Validating(name, rules("CREATE", "DELETE"), admission.Validate(check)),
			"rules[0].operations: the handler does not answer DELETE; it answers CREATE, UPDATE"},
		{"update without a function", admission.Validating(name, rules("UPDATE"), creates), "does not answer UPDATE; it answers CREATE"},
		{"all operations", admission.Validating(name, rules("*"), creates), `"*" stands for all operations; the handler answers CREATE only`},
		{"delete for a mutator", admission.Mutating(name, rules("DELETE"), admission.Mutate(check)), "does not answer DELETE; it answers CREATE, UPDATE, CONNECT"},
		{"a second rule", admission.Validating(name, append(rules("CREATE"), rules("DELETE")...), creates), "rules[1].operations: "},
		{"a handler that answers all", admission.Validating(name, rules("*"), admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
			return admission.Allowed(), nil
		})), ""},
		{"a chain that answers less than its first", admission.Mutating(name, rules("CREATE", "UPDATE"), admission.Chain(admission.Mutate(check), creates)), "does not answer UPDATE; it answers CREATE"},
		{"a named handler", admission.Validating(name, rules("DELETE"), admission.Named("x", creates)), "does not answer DELETE"},
		{"no function", admission.Mutating(name, rules(), admission.Mutate[*corev1.Pod](nil)), "handler: the function that changes objects is missing"},
		{"no check", admission.Validating(name, rules(), admission.Validate[*corev1.Pod](nil)), "handler: the function that checks objects is missing"},
		{"no checks", admission.Validating(name, rules(), admission.ValidateEach(admission.Checks[*corev1.Pod]{})), "handler: there is no function"},
		{"no defaulter", admission.Mutating(name, rules(), admission.MutateWith[*corev1.Pod](nil)), "handler: the defaulter is missing"},
		{"a nil defaulter", admission.Mutating(name, rules(), admission.MutateWith((*defaulter)(nil))), "handler: the defaulter is missing"},
		{"no validator", admission.Validating(name, rules(), admission.ValidateWith[*corev1.Pod, []string](nil)), "handler: the validator is missing"},
		{"an interface without a type", admission.Mutating(name, rules(), admission.Mutate(func(context.Context, runtime.Object) error { return nil })), "admission.As"},
		{"an interface with a type", admission.Mutating(name, rules(), admission.Mutate(func(context.Context, runtime.Object) error { return nil }, admission.As(&corev1.Pod{}))), ""},
		{"a type that does not fit", admission.Mutating(name, rules(), admission.Mutate(check, admission.As(&corev1.Secret{}))), "a *v1.Secret cannot be passed"},
		{"a mutator that validates", admission.Validating(name, rules(), admission.Named("x", admission.Chain(admission.Mutate(check)))), "handler: changes objects"},
		{"an empty chain", admission.Mutating(name, rules(), admission.Chain()), "handler: the chain has no handlers"},
		{"a nil function", admission.Validating(name, rules(), admission.HandlerFunc(nil)), "is missing: pass one, such as admission.Validate(check)"},
		{"a nil function in a chain", admission.Validating(name, rules(), admission.Chain(admission.HandlerFunc(nil))), "handler 1 of the chain: is missing"},
		{"a nil function with a name", admission.Validating(name, rules(), admission.Named("x", admission.HandlerFunc(nil))), `handler "x": is missing`},
		{"a nil option of a mutator", admission.Mutating(name, rules(), admission.Mutate(check, nil)), "handler: option 1 is nil: leave it out"},
		{"a nil option of a validator", admission.Validating(name, rules(), admission.Validate(check, admission.ErrorsDeny(), nil)), "handler: option 2 is nil: leave it out"},
		{"a nil option of a webhook", admission.Validating(name, rules(), admission.Validate(check), nil), "options: option 1 is nil: leave it out"},
		{"a timeout of 0", admission.Validating(name, rules(), admission.Validate(check), admission.WithTimeout(0)), "timeoutSeconds: is 0; the API server allows 1 to 30: leave WithTimeout out for 5"},
		{"a chain with a hole", admission.Mutating(name, rules(), admission.Chain(nil)), "handler 1 of the chain: is missing"},
		{"a chain that agrees on nothing", admission.Mutating(name, rules(), admission.Chain(creates, admission.ValidateEach(admission.Checks[*corev1.Pod]{Delete: check}))),
			"the handlers of the chain have no operation in common"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.webhook.Problems()
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if tc.want != "" && strings.HasPrefix(tc.want, "handler: ") {
				if resp, err := tc.webhook.Handler.Handle(t.Context(), podRequest(admissionv1.Create)); !strings.Contains(tc.want, "changes objects") && err == nil {
					t.Errorf("served anyway: %+v", resp)
				}
			}
		})
	}
}

type defaulter struct{}

func (*defaulter) Default(_ context.Context, pod *corev1.Pod) error {
	pod.Spec.NodeName = "n"
	return nil
}

func TestDefinitionConstructors(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"}
	handler := admission.HandlerFunc(nil)
	got := admission.Mutating("a.b.c", admission.Rules(resource), nil, admission.AtPath("/x"), admission.WithFailurePolicy("Ignore"),
		admission.WithTimeout(7), admission.WithNamespaceSelector(selector), admission.WithObjectSelector(selector), admission.WithMatchCondition("m", "true"),
		func(w *admission.Webhook) { w.SideEffects = "NoneOnDryRun" })
	want := admission.Webhook{
		Name: "a.b.c", Path: "/x", Type: admission.TypeMutating, FailurePolicy: "Ignore", TimeoutSeconds: 7, SideEffects: "NoneOnDryRun",
		NamespaceSelector: selector, ObjectSelector: selector, MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "m", Expression: "true"}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"crontabs"}},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if v := admission.Validating("a.b.c", nil, handler); v.Type != admission.TypeValidating || v.Path != "/a.b.c" {
		t.Errorf("got %+v", v)
	}
}
