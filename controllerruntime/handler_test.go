// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/controllerruntime"
)

const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n","labels":{"a":"1"}},"data":{"k":"v"},"unknown":9007199254740993}`

func request() *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID: "u", Operation: admissionv1.Create, Name: "n", Namespace: "ns",
		Kind:   metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Object: runtime.RawExtension{Raw: []byte(configMap)},
	}
}

func answers(response ctrladmission.Response) ctrladmission.Handler {
	return ctrladmission.HandlerFunc(func(context.Context, ctrladmission.Request) ctrladmission.Response { return response })
}

func TestAHandlersResponseBecomesADecisionOrAFault(t *testing.T) {
	errored := ctrladmission.Errored(http.StatusServiceUnavailable, errors.New("not yet"))
	errored.Result.Details = &metav1.StatusDetails{RetryAfterSeconds: 3}
	raw := ctrladmission.Allowed("")
	raw.Patch = []byte(`[{"op":"add","path":"/data/x","value":"y"}]`)
	refusedWithPatch := ctrladmission.Patched("", operation("add", "/data/x", "y"))
	refusedWithPatch.Allowed = false
	annotated := ctrladmission.Denied("no").WithWarnings("w1", "w2")
	annotated.AuditAnnotations = map[string]string{"k": "v"}
	for name, tc := range map[string]struct {
		response ctrladmission.Response
		allowed  bool
		code     int32
		message  string
		patch    string
		fault    string
		retry    time.Duration
	}{
		"allowed":                             {response: ctrladmission.Allowed("fine"), allowed: true},
		"denied":                              {response: ctrladmission.Denied("say why"), code: 403, message: "say why"},
		"refused as a bad request":            {response: ctrladmission.Errored(400, errors.New("bad")), code: 400, message: "bad"},
		"refused without a word":              {response: ctrladmission.Response{}, code: 403},
		"an internal error is a fault":        {response: ctrladmission.Errored(500, errors.New("a bug")), fault: "a bug"},
		"an error that passes is tried again": {response: errored, fault: "not yet", retry: 3 * time.Second},
		"patched": {response: ctrladmission.Patched("", operation("replace", "/data/k", "w"), operation("remove", "/metadata/labels/a", nil)),
			allowed: true, patch: `[{"op":"remove","path":"/metadata/labels/a"},{"op":"add","path":"/data/k","value":"w"}]`},
		"patched by bytes":                   {response: raw, allowed: true, patch: `[{"op":"add","path":"/data/x","value":"y"}]`},
		"patched without a change":           {response: ctrladmission.Patched("", operation("replace", "/data/k", "v")), allowed: true},
		"a patch that does not apply":        {response: ctrladmission.Patched("", operation("remove", "/data/none", nil)), fault: "cannot be applied"},
		"the patch of a refusal is left out": {response: refusedWithPatch, code: 200},
		"warnings and annotations stay":      {response: annotated, code: 403, message: "no"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := controllerruntime.Handler(answers(tc.response)).Handle(t.Context(), request())
			if tc.fault != "" {
				after, passes := admission.RetryAfter(err)
				if err == nil || !strings.Contains(err.Error(), tc.fault) || after != tc.retry || passes != (tc.retry > 0) {
					t.Errorf("fault %v, retry after %s", err, after)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Allowed != tc.allowed || !tc.allowed && (got.Status.Code != tc.code || got.Status.Message != tc.message) {
				t.Errorf("got %+v, status %v", got, got.Status)
			}
			patch := ""
			if len(got.Patch) > 0 {
				patch = string(got.Patch.AppendJSON(nil))
			}
			if patch != tc.patch {
				t.Errorf("patch %s", patch)
			}
			if !reflect.DeepEqual(got.Warnings, tc.response.Warnings) || !reflect.DeepEqual(got.AuditAnnotations, tc.response.AuditAnnotations) {
				t.Errorf("warnings %q, annotations %v", got.Warnings, got.AuditAnnotations)
			}
		})
	}
}

func TestAHandlerWithoutAnythingToCallIsAProblem(t *testing.T) {
	for name, handler := range map[string]ctrladmission.Handler{
		"nil":                       nil,
		"a nil webhook":             (*ctrladmission.Webhook)(nil),
		"a webhook without handler": &ctrladmission.Webhook{},
	} {
		t.Run(name, func(t *testing.T) {
			adapted := controllerruntime.Handler(handler)
			rules := admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"))
			if err := admission.Validating("a.b.example.com", rules, adapted).Problems(); err == nil || !strings.Contains(err.Error(), "handler") {
				t.Errorf("the definition says %v", err)
			}
			if _, err := adapted.Handle(t.Context(), request()); err == nil {
				t.Error("no fault")
			}
		})
	}
}

func TestAContextFuncGetsTheHTTPRequest(t *testing.T) {
	type key struct{}
	inner := &ctrladmission.Webhook{
		Handler: ctrladmission.HandlerFunc(func(ctx context.Context, _ ctrladmission.Request) ctrladmission.Response {
			return ctrladmission.Denied(fmt.Sprint(ctx.Value(key{})))
		}),
		WithContextFunc: func(ctx context.Context, r *http.Request) context.Context {
			return context.WithValue(ctx, key{}, fmt.Sprint(ctx.Value(key{}), " then ", r.Header.Get("Traceparent")))
		},
	}
	handler := controllerruntime.Handler(&ctrladmission.Webhook{Handler: inner, WithContextFunc: func(ctx context.Context, r *http.Request) context.Context {
		return context.WithValue(ctx, key{}, r.URL.Path)
	}})
	if _, err := handler.Handle(t.Context(), request()); err == nil || !strings.Contains(err.Error(), "WithContextFunc") {
		t.Errorf("without an HTTP request: %v", err)
	}

	rules := admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"))
	app, err := sallyport.New("test", sallyport.WithWebhooks(admission.Validating("a.b.example.com", rules, handler, admission.AtPath("/ask"))))
	if err != nil {
		t.Fatal(err)
	}
	serve, err := app.Handler(controllerruntime.ServingOptions())
	if err != nil {
		t.Fatal(err)
	}
	call := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/ask", strings.NewReader(review(t)))
	call.Header.Set("Content-Type", "application/json")
	call.Header.Set("Traceparent", "hunter2")
	answer := httptest.NewRecorder()
	serve.ServeHTTP(answer, call)
	if body := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(body, "/ask then hunter2") {
		t.Errorf("%d %s", answer.Code, body)
	}
}

// Defaulters of projects that rely on it keep controller-runtime's option, in its own constructor.
func TestADefaulterMayRemoveUnknownFields(t *testing.T) {
	defaulter := ctrladmission.WithDefaulter(clientgoscheme.Scheme, nothing{}, ctrladmission.DefaulterRemoveUnknownOrOmitableFields)
	answer, err := controllerruntime.Handler(defaulter).Handle(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if patch, err := json.Marshal(answer.Patch); err != nil || string(patch) != `[{"op":"remove","path":"/unknown"}]` {
		t.Errorf("%s, %v", patch, err)
	}
}

type nothing struct{}

func (nothing) Default(context.Context, *corev1.ConfigMap) error { return nil }

func TestAPanicOfAWebhookIsNotHiddenInARefusal(t *testing.T) {
	handler := controllerruntime.Handler(&ctrladmission.Webhook{Handler: ctrladmission.HandlerFunc(
		func(context.Context, ctrladmission.Request) ctrladmission.Response { panic("hunter2") })})
	defer func() {
		if recover() == nil {
			t.Error("whoever calls handlers does not learn of the panic")
		}
	}()
	_, _ = handler.Handle(t.Context(), request())
}

func TestWhatComesAfterTheDeadlineIsAFault(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	handler := controllerruntime.Handler(ctrladmission.HandlerFunc(func(ctx context.Context, _ ctrladmission.Request) ctrladmission.Response {
		cancel()
		return ctrladmission.Denied(ctx.Err().Error())
	}))
	if _, err := handler.Handle(ctx, request()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// labels changes several maps at once, which controller-runtime answers in any order.
type labels struct{}

func (labels) Default(ctx context.Context, c *corev1.ConfigMap) error {
	req, err := ctrladmission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	c.Labels = map[string]string{"b": req.Namespace, "c": "2", "d": "3"}
	c.Annotations = map[string]string{"e": "4"}
	c.Data["l"] = "m"
	c.Data["k"] = "w"
	return nil
}

func TestTheSamePatchesComeInTheSameOrder(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	handler := controllerruntime.Handler(ctrladmission.WithDefaulter[*corev1.ConfigMap](scheme, labels{}))
	first := ""
	for range 50 {
		got, err := handler.Handle(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		patch := string(got.Patch.AppendJSON(nil))
		if first == "" {
			first = patch
		}
		if patch != first || len(got.Patch) < 4 {
			t.Fatalf("once\n%s\nonce\n%s", first, patch)
		}
	}
	if strings.Contains(first, "unknown") {
		t.Errorf("touches a field that nobody changed: %s", first)
	}
}

func TestADefaulterOfControllerRuntimeFindsItsRequest(t *testing.T) {
	for name, handler := range map[string]admission.Handler{
		"typed":  controllerruntime.Defaulter(labels{}),
		"custom": controllerruntime.Defaulter(custom{}, admission.As(&corev1.ConfigMap{})),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := handler.Handle(t.Context(), request())
			if err != nil {
				t.Fatal(err)
			}
			if patch := string(got.Patch.AppendJSON(nil)); !got.Allowed || !strings.Contains(patch, `"ns"`) {
				t.Errorf("allowed %v, status %v, patch %s", got.Allowed, got.Status, patch)
			}
		})
	}
	got, err := controllerruntime.Defaulter(labels{}).Handle(admission.WithOrigins(t.Context()), request())
	if err != nil || len(got.Origins) == 0 || got.Origins[0].Source != "controllerruntime_test.labels" {
		t.Errorf("origins %v, %v", got, err)
	}
}

type custom struct{}

var (
	_ ctrladmission.Defaulter[runtime.Object] = custom{} // a CustomDefaulter
	_ ctrladmission.Validator[runtime.Object] = custom{}
)

func (custom) Default(ctx context.Context, object runtime.Object) error {
	return labels{}.Default(ctx, object.(*corev1.ConfigMap))
}

func (custom) ValidateCreate(ctx context.Context, object runtime.Object) (ctrladmission.Warnings, error) {
	req, err := ctrladmission.RequestFromContext(ctx)
	return ctrladmission.Warnings{string(req.Operation) + " " + object.(*corev1.ConfigMap).Data["k"]}, err
}

func (custom) ValidateUpdate(_ context.Context, old, object runtime.Object) (ctrladmission.Warnings, error) {
	return nil, errors.New("from " + old.(*corev1.ConfigMap).Name + " to " + object.(*corev1.ConfigMap).Name)
}

func (custom) ValidateDelete(_ context.Context, old runtime.Object) (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{"delete " + old.(*corev1.ConfigMap).Name}, nil
}

func TestAValidatorOfControllerRuntimeIsAskedAboutEachOperation(t *testing.T) {
	handler := controllerruntime.Validator(custom{}, admission.As(&corev1.ConfigMap{}))
	for operation, want := range map[admissionv1.Operation]admission.Response{
		admissionv1.Create: {Allowed: true, Warnings: []string{"CREATE v"}},
		admissionv1.Update: *admission.DeniedResponse("from n to n"),
		admissionv1.Delete: {Allowed: true, Warnings: []string{"delete n"}},
	} {
		t.Run(string(operation), func(t *testing.T) {
			req := request()
			req.Operation = operation
			if operation != admissionv1.Create {
				req.OldObject = req.Object
			}
			if operation == admissionv1.Delete {
				req.Object = runtime.RawExtension{}
			}
			got, err := handler.Handle(t.Context(), req)
			if err != nil || !reflect.DeepEqual(*got, want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	rules := admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"), "CONNECT")
	if err := admission.Validating("a.b.example.com", rules, handler).Problems(); err == nil {
		t.Error("CONNECT, which nobody looks at, may be registered")
	}
}

func TestMissingDefaultersAndValidatorsAreProblems(t *testing.T) {
	for name, handler := range map[string]admission.Handler{
		"defaulter": controllerruntime.Defaulter[*corev1.ConfigMap](nil),
		"validator": controllerruntime.Validator[*corev1.ConfigMap](nil),
	} {
		t.Run(name, func(t *testing.T) {
			if err := handler.(interface{ Problems() error }).Problems(); err == nil || !strings.Contains(err.Error(), "missing") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// operation returns an operation of controller-runtime's responses. Its type is in a module that the
// library must not require: a higher version would change the responses of those who import both.
var operation = operationOf(ctrladmission.Response{}.Patches)

func operationOf[T any]([]T) func(name, path string, value any) T {
	return func(name, path string, value any) (o T) {
		fields := reflect.ValueOf(&o).Elem()
		fields.FieldByName("Operation").SetString(name)
		fields.FieldByName("Path").SetString(path)
		if value != nil {
			fields.FieldByName("Value").Set(reflect.ValueOf(value))
		}
		return o
	}
}
