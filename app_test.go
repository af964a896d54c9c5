// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

var podRules = admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"))

func mutating(name string, options ...admission.WebhookOption) admission.Webhook {
	return admission.Mutating(name, podRules, admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
		pod.Spec.NodeName = "n"
		return nil
	}), options...)
}

func noController(manager.Manager) error { return nil }

func TestNewReportsEveryProblem(t *testing.T) {
	_, err := sallyport.New("Not_a_name",
		sallyport.WithWebhooks(
			mutating("unqualified"),
			mutating("twice.pods.example.com", admission.AtPath("/one")),
			mutating("twice.pods.example.com", admission.AtPath("/two")),
			mutating("a.pods.example.com", admission.AtPath("/same")),
			admission.Validating("b.pods.example.com", podRules, admission.ValidateEach(admission.Checks[*corev1.Pod]{}), admission.AtPath("/same")),
			mutating("probe.pods.example.com", admission.AtPath("/readyz")),
			admission.Mutating("rules.pods.example.com", nil, nil),
			mutating("services.pods.example.com", func(w *admission.Webhook) {
				w.Rules = admission.Rules(corev1.SchemeGroupVersion.WithResource("services"))
			}),
			mutating("kind.pods.example.com", func(w *admission.Webhook) {
				w.Rules = admission.Rules(corev1.SchemeGroupVersion.WithResource("Pod"))
			}),
			mutating("selector.pods.example.com", admission.WithObjectSelector(&metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}},
			})),
		),
		sallyport.WithController("c", noController), sallyport.WithController("d", nil), sallyport.WithController("c", noController),
		sallyport.WithTypes(nil),
		sallyport.WithTypes(runtime.NewScheme(), &corev1.Pod{}, nil),
	)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`name "Not_a_name"`,
		`webhook "unqualified": name: `,
		`two webhooks have the name "twice.pods.example.com": the mutating one at /one and the mutating one at /two`,
		`two webhooks have the path /same: "a.pods.example.com" and "b.pods.example.com"`,
		`webhook "b.pods.example.com": handler: there is no function that checks objects`,
		`webhook "probe.pods.example.com": path: /readyz is the server's own`,
		`webhook "rules.pods.example.com": rules: are missing`,
		`webhook "rules.pods.example.com": handler: is missing`,
		`webhook "services.pods.example.com": rules[0].resources: services are of kind Service, the handler reads v1.Pod: it would refuse each of them`,
		`webhook "kind.pods.example.com": rules[0].resources: "Pod" is not a resource`,
		`webhook "selector.pods.example.com": objectSelector: "Like" is not a valid label selector operator`,
		`two controllers have the name "c": the ones registered as number 1 and number 3`,
		`controller "d": the function that sets it up is missing`,
		"types: the scheme is missing",
		"type 1, *v1.Pod: implements none of Default",
		"type 2, <nil>: is nil",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %q in:\n%v", want, err)
		}
	}
	for name, change := range map[string]func(*manager.Options){"there is no manager": func(*manager.Options) {}, "the function is missing": nil} {
		if _, err := sallyport.New("a", sallyport.WithManagerOptions(change)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("options of a manager: %v", err)
		}
	}
	if _, err := sallyport.New("empty"); err == nil || !strings.Contains(err.Error(), "nothing to run") {
		t.Errorf("an empty application: %v", err)
	}
	other := runtime.NewScheme()
	_ = corev1.AddToScheme(other)
	if _, err := sallyport.New("a", sallyport.WithTypes(scheme(t), podDefaulter{}), sallyport.WithTypes(other), sallyport.WithController("c", noController)); err == nil || !strings.Contains(err.Error(), "WithScheme") {
		t.Errorf("several schemes: %v", err)
	}
}

// CronTab partly defaults and validates itself.
type CronTab struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Schedule string `json:"schedule,omitempty"`
	} `json:"spec,omitempty"`
}

func (c *CronTab) DeepCopyObject() runtime.Object { d := *c; return &d }

func (*CronTab) Default(_ context.Context, object runtime.Object) error {
	object.(*CronTab).Spec.Schedule = "* * * * *"
	return nil
}

func (*CronTab) ValidateUpdate(_ context.Context, old, c *CronTab) (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{old.Spec.Schedule + " to " + c.Spec.Schedule}, nil
}

type podDefaulter struct{}

func (podDefaulter) Default(_ context.Context, pod *corev1.Pod) error {
	pod.Spec.NodeName = "n"
	return nil
}

type (
	oldStyle   struct{}
	mixedUp    struct{ podDefaulter }
	anyObject  struct{}
	noPointers struct{}
)

func (oldStyle) Default() {} // which is not an API type

// Legacy defaults and validates itself like API types before controller-runtime v0.20.
type Legacy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Schedule string `json:"schedule,omitempty"`
	} `json:"spec,omitempty"`
}

func (l *Legacy) DeepCopyObject() runtime.Object { d := *l; return &d }

func (l *Legacy) Default() { l.Spec.Schedule += "!" }

func (l *Legacy) ValidateCreate() error {
	if l.Spec.Schedule == "" {
		return errors.New("no schedule")
	}
	return nil
}

func (l *Legacy) ValidateUpdate(old runtime.Object) (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{old.(*Legacy).Spec.Schedule + " to " + l.Spec.Schedule}, nil
}

func (l *Legacy) ValidateDelete() ([]string, error) {
	return []string{"gone: " + l.Spec.Schedule}, nil
}

// badLegacy has an old method with a result that never existed.
type badLegacy struct{ Legacy }

func (*badLegacy) Default() error { return nil }

func (mixedUp) ValidateCreate(context.Context, *corev1.Secret) ([]string, error) { return nil, nil }

func (anyObject) Default(context.Context, runtime.Object) error { return nil }

func (noPointers) ValidateCreate(context.Context, *corev1.Pod) error { return nil }

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypes(schema.GroupVersion{Group: "stable.example.com", Version: "v1"}, &CronTab{})
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWithTypesRegistersExactlyWhatIsImplemented(t *testing.T) {
	app, err := sallyport.New("a", sallyport.WithTypes(scheme(t),
		&CronTab{},
		sallyport.Type{Implementation: podDefaulter{}, Resource: "podz", Options: []admission.WebhookOption{admission.WithFailurePolicy("Ignore")}},
	))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range app.Webhooks() {
		var operations []string
		for _, o := range w.Rules[0].Operations {
			operations = append(operations, string(o))
		}
		rule := w.Rules[0].Rule
		got = append(got, strings.Join([]string{w.Name, string(w.Type), w.Path, rule.APIGroups[0] + "/" + rule.APIVersions[0] + "/" + rule.Resources[0],
			strings.Join(operations, "+"), string(w.FailurePolicy)}, " "))
	}
	want := []string{
		"default.v1.crontab.stable.example.com Mutating /mutate-stable-example-com-v1-crontab stable.example.com/v1/crontabs CREATE+UPDATE ",
		"validate.v1.crontab.stable.example.com Validating /validate-stable-example-com-v1-crontab stable.example.com/v1/crontabs UPDATE ",
		"default.v1.pod.core Mutating /mutate--v1-pod /v1/podz CREATE+UPDATE Ignore",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	req := &admissionv1.AdmissionRequest{Operation: admissionv1.Update, Kind: metav1.GroupVersionKind{Group: "stable.example.com", Version: "v1", Kind: "CronTab"}}
	req.Object.Raw, req.OldObject.Raw = []byte(`{"spec":{"schedule":"b"}}`), []byte(`{"spec":{"schedule":"a"}}`)
	resp, err := app.Webhooks()[0].Handler.Handle(t.Context(), req)
	if err != nil || len(resp.Patch) != 1 {
		t.Errorf("default: %+v, %v", resp, err)
	}
	resp, err = app.Webhooks()[1].Handler.Handle(t.Context(), req)
	if err != nil || !resp.Allowed || !slices.Equal(resp.Warnings, []string{"a to b"}) {
		t.Errorf("validate: %+v, %v", resp, err)
	}
	req.Kind.Version = "v2"
	if resp, err = app.Webhooks()[0].Handler.Handle(t.Context(), req); err != nil || resp.Allowed || resp.Status.Code != 400 {
		t.Errorf("another version: %+v, %v", resp, err)
	}
}

func TestTypesThatValidateThemselvesTheOldWay(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypes(schema.GroupVersion{Group: "stable.example.com", Version: "v1"}, &Legacy{})
	app, err := sallyport.New("a", sallyport.WithTypes(s, &Legacy{}))
	if err != nil {
		t.Fatal(err)
	}
	webhooks := app.Webhooks()
	if len(webhooks) != 2 {
		t.Fatalf("%d webhooks", len(webhooks))
	}
	call := func(webhook int, operation admissionv1.Operation, object, old string) (*admission.Response, error) {
		req := &admissionv1.AdmissionRequest{Operation: operation, Kind: metav1.GroupVersionKind{Group: "stable.example.com", Version: "v1", Kind: "Legacy"}}
		req.Object.Raw, req.OldObject.Raw = []byte(object), []byte(old)
		return webhooks[webhook].Handler.Handle(t.Context(), req)
	}
	for range 2 { // what one object is told is not told the next one
		if resp, err := call(0, admissionv1.Create, `{"spec":{"schedule":"a"}}`, ""); err != nil || len(resp.Patch) != 1 || string(resp.Patch[0].Value) != `"a!"` {
			t.Errorf("default: %+v, %v", resp, err)
		}
	}
	if resp, err := call(1, admissionv1.Create, `{}`, ""); err != nil || resp.Allowed || resp.Status.Message != "no schedule" {
		t.Errorf("create: %+v, %v", resp, err)
	}
	if resp, err := call(1, admissionv1.Create, `{"spec":{"schedule":"a"}}`, ""); err != nil || !resp.Allowed {
		t.Errorf("create: %+v, %v", resp, err)
	}
	if resp, err := call(1, admissionv1.Update, `{"spec":{"schedule":"b"}}`, `{"spec":{"schedule":"a"}}`); err != nil || !resp.Allowed || !slices.Equal(resp.Warnings, []string{"a to b"}) {
		t.Errorf("update: %+v, %v", resp, err)
	}
	if resp, err := call(1, admissionv1.Delete, "", `{"spec":{"schedule":"c"}}`); err != nil || !resp.Allowed || !slices.Equal(resp.Warnings, []string{"gone: c"}) {
		t.Errorf("delete: %+v, %v", resp, err)
	}
}

func TestWithTypesReportsWhatDoesNotFit(t *testing.T) {
	for _, tc := range []struct {
		name           string
		implementation any
		want           string
	}{
		{"a method of another signature", oldStyle{}, "method Default: it is a func(); make it a func(context.Context, T) error"},
		{"an old method with a result that none had", &badLegacy{}, "method Default: it is a func() error; make it a func(context.Context, T) error"},
		{"a method without warnings", noPointers{}, "make it a func(context.Context, T) (warnings []string, err error)"},
		{"methods for several types", mixedUp{}, "method ValidateCreate is for *v1.Secret, another one for *v1.Pod"},
		{"any object", anyObject{}, "it takes any object"},
		{"a type that is not in the scheme", &stranger{}, "*sallyport_test.stranger is not in the scheme"},
		{"a nil pointer", (*CronTab)(nil), "is nil"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := sallyport.New("a", sallyport.WithTypes(scheme(t), tc.implementation))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

type stranger struct{ metav1.TypeMeta }

func (s *stranger) DeepCopyObject() runtime.Object { c := *s; return &c }

func (*stranger) Default(context.Context, *stranger) error { return nil }

func TestCommandHasTheFlagsOfWhatIsRegistered(t *testing.T) {
	webhooks, controllers := sallyport.WithWebhooks(mutating("a.b.c")), sallyport.WithController("c", noController)
	for _, tc := range []struct {
		name      string
		options   []sallyport.Option
		has, lack []string
	}{
		{"webhooks", []sallyport.Option{webhooks}, []string{"secure-port", "service", "certificate-source", "registration", "kubeconfig", "log-level", "leader-elect"}, []string{"webhooks", "controllers", "leader-election-namespace"}},
		{"controllers", []sallyport.Option{controllers}, []string{"leader-elect", "metrics-bind-address", "kubeconfig", "log-level"}, []string{"webhooks", "controllers", "secure-port", "service", "certificate-source"}},
		{"both", []sallyport.Option{webhooks, controllers}, []string{"webhooks", "controllers", "leader-elect", "secure-port"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			app, err := sallyport.New("app", tc.options...)
			if err != nil {
				t.Fatal(err)
			}
			var flags []string
			app.Command().Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
			for _, name := range tc.has {
				if !slices.Contains(flags, name) {
					t.Errorf("no --%s among %v", name, flags)
				}
			}
			for _, name := range tc.lack {
				if slices.Contains(flags, name) {
					t.Errorf("--%s is there", name)
				}
			}
		})
	}
}

func TestCommandReportsEveryProblemInItsFlags(t *testing.T) {
	app, err := sallyport.New("app", sallyport.WithWebhooks(mutating("a.b.c")), sallyport.WithController("c", noController))
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) error {
		cmd := app.Command()
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		return cmd.ExecuteContext(t.Context())
	}
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"many at once", []string{"--service", "x", "--log-level", "loud", "--certificate-source", "air", "--failure-policy", "Maybe", "--webhook-timeout", "31", "--kubeconfig", "/not/there"},
			[]string{"--service", "--log-level", "--certificate-source", "--failure-policy", "--webhook-timeout", "--kubeconfig"}},
		{"unknown names", []string{"--webhooks", "*,-x", "--controllers", "y"}, []string{`--webhooks: webhooks: Unsupported value: "x": supported values: "a.b.c"`, `--controllers: controllers: Unsupported value: "y"`}},
		{"nothing selected", []string{"--webhooks=", "--controllers=-c"}, []string{"there is nothing to run"}},
		{"controllers alone need no service", []string{"--webhooks=", "--kubeconfig", "/not/there"}, []string{"--kubeconfig"}},
		{"an argument", []string{"x"}, []string{"takes no arguments"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := run(tc.args...)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("nothing of %q in:\n%v", want, err)
				}
			}
			if tc.name == "controllers alone need no service" && strings.Contains(err.Error(), "--service") {
				t.Errorf("it wants a service: %v", err)
			}
		})
	}
}

func TestHandlerNeedsNoCluster(t *testing.T) {
	app, err := sallyport.New("app", sallyport.WithWebhooks(
		mutating("node.pods.example.com", admission.AtPath("/node")),
		admission.Validating("panic.pods.example.com", podRules, admission.Validate(func(context.Context, *corev1.Pod) error { panic("a value") }), admission.AtPath("/panic")),
	))
	if err != nil {
		t.Fatal(err)
	}
	options := serving.DefaultOptions()
	options.MaxBodyBytes = 10 << 10
	options.Logger = slog.New(slog.DiscardHandler)
	handler, err := app.Handler(options)
	if err != nil {
		t.Fatal(err)
	}
	review := func(name string) string {
		body, err := json.Marshal(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Request: &admissionv1.AdmissionRequest{
				UID: "u", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
				Object: runtime.RawExtension{Raw: []byte(`{"metadata":{"name":"` + name + `"}}`)},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for _, tc := range []struct {
		name, method, path, body string
		code                     int
		want                     string
	}{
		{"a review", "POST", "/node", review("a"), 200, `"patchType":"JSONPatch"`},
		{"a GET", "GET", "/node", "", 405, ""},
		{"another path", "POST", "/other", review("a"), 404, ""},
		{"a body that is too large", "POST", "/node", review(strings.Repeat("a", 20<<10)), 413, ""},
		{"a panic", "POST", "/panic", review("a"), 500, ""},
		{"a probe", "GET", "/readyz", "", 200, "ok"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, bytes.NewBufferString(tc.body))
			req.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) || strings.Contains(w.Body.String(), "a value") {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	component := func(sallyport.Environment) (sallyport.Component, error) {
		t.Error("a handler builds a component")
		return sallyport.Component{}, nil
	}
	for what, tc := range map[string]struct {
		declares []sallyport.Option
		want     string
	}{
		"a component that declares its webhook": {[]sallyport.Option{sallyport.WithWebhooks(mutating("b.pods.example.com"))}, ""},
		"a component that declares nothing":     {nil, "declare them with WithComponent"},
	} {
		app, err := sallyport.New("app", sallyport.WithComponent(component, tc.declares...))
		if err != nil {
			t.Fatal(err)
		}
		options.Registry = nil
		if _, err := app.Handler(options); err == nil && tc.want != "" || err != nil && (tc.want == "" || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestDefinitionsKeepWhatNoFlagSays(t *testing.T) {
	own := mutating("a.pods.example.com", admission.WithFailurePolicy(admissionregistrationv1.Ignore), admission.WithTimeout(7),
		admission.WithNamespaceSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}))
	app, err := sallyport.New("app", sallyport.WithWebhooks(own))
	if err != nil {
		t.Fatal(err)
	}
	settings := app.DefaultSettings()
	settings.Registration.Service = &registration.Service{Namespace: "home", Name: "webhooks"}
	settings.Registration.NamespaceSelector = metav1.SetAsLabelSelector(map[string]string{"tier": "prod"})
	got, err := hosting.Apply(&settings.Registration, app.Webhooks())
	if err != nil {
		t.Fatal(err)
	}
	if got[0].FailurePolicy != admissionregistrationv1.Ignore || got[0].TimeoutSeconds != 7 || len(got[0].ReviewVersions) != 0 {
		t.Errorf("got %+v", got[0])
	}
	if s := metav1.FormatLabelSelector(got[0].NamespaceSelector); s != "kubernetes.io/metadata.name notin (home,kube-node-lease,kube-public,kube-system),team=a,tier in (prod)" {
		t.Errorf("selector is %s", s)
	}
	settings.Registration.FailurePolicy, settings.Registration.TimeoutSeconds, settings.Registration.ReviewVersions = "Fail", 3, []string{"v1"}
	if got, err = hosting.Apply(&settings.Registration, app.Webhooks()); err != nil || got[0].FailurePolicy != "Fail" || got[0].TimeoutSeconds != 3 || len(got[0].ReviewVersions) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if own.FailurePolicy != admissionregistrationv1.Ignore {
		t.Error("the definition was changed")
	}
}
