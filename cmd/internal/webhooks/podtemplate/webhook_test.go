// SPDX-License-Identifier: Apache-2.0

package podtemplate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/podtemplate"
	"github.com/sallyport-io/sallyport/test/cases"
)

var deployments = metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// newWebhooks defines the webhook as a server does, with the objects of a cluster.
func newWebhooks(t testing.TB, settings, cluster []byte) []admission.Webhook {
	t.Helper()
	c := serve.Default()
	c.Webhooks = append(c.Webhooks, configv1alpha1.Webhook{Name: "podtemplate"})
	if err := yaml.UnmarshalStrict(settings, c.Settings["podtemplate"]); err != nil {
		t.Fatal(err)
	}
	webhooks, err := c.Define(serve.From(serve.PodDefaultSources{PodDefaults: indexOf(t, cluster), Authors: serve.Anybody{}}))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(webhooks, func(w admission.Webhook) bool { return w.Name != podtemplate.Name })
}

func indexOf(t testing.TB, cluster []byte) *source.Index {
	t.Helper()
	index := source.NewIndex()
	index.SetNamespace(cases.Namespace, map[string]string{corev1.LabelMetadataName: cases.Namespace})
	for _, document := range podtest.SplitYAML(t, cluster) {
		var of metav1.TypeMeta
		pd, cpd, secret := &kubeflowv1alpha1.PodDefault{}, &sallyportv1alpha1.ClusterPodDefault{}, &corev1.Secret{}
		err := yaml.Unmarshal(document, &of)
		switch of.Kind {
		case kubeflowv1alpha1.PodDefaultKind:
			err = errors.Join(err, yaml.UnmarshalStrict(document, pd))
			index.Set(plan.Compile(pd))
		case sallyportv1alpha1.ClusterPodDefaultKind:
			err = errors.Join(err, yaml.UnmarshalStrict(document, cpd))
			index.Set(plan.CompileCluster(cpd))
		case "Secret":
			err = errors.Join(err, yaml.UnmarshalStrict(document, secret))
			index.SetSecret(secret.Namespace, secret.Name, secret.Labels)
		default:
			t.Fatalf("kind %q", of.Kind)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return index
}

func TestCases(t *testing.T) { cases.Run(t, deployments, newWebhooks) }

func TestSettingsReportEveryProblem(t *testing.T) {
	err := podtemplate.Settings{
		Kinds: []string{"Pod", "Deployment", "Deployment", "Workspace"},
		Resources: []podtemplate.Resource{
			{}, {Group: "A b", Version: "1", Resource: "x/y"}, {Group: "a.example", Version: "v1", Resource: "things"},
			{Group: "a.example", Version: "v1", Resource: "things"}, {Group: "kubeflow.org", Version: "v1beta1", Resource: "notebooks"}, {Version: "v1", Resource: "pods"},
		},
	}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`kinds[0]: Unsupported value: "Pod": supported values: "Deployment"`, `kinds[2]: Duplicate value: "Deployment"`, `kinds[3]: Unsupported value: "Workspace"`,
		"resources[0].group: Required value", "resources[0].version: Required value", "resources[0].resource: Required value",
		`resources[1].group: Invalid value: "A b"`, `resources[1].version: Invalid value: "1"`, `resources[1].resource: Invalid value: "x/y"`,
		`resources[3]: Duplicate value: "things"`, `resources[4]: Invalid value: "notebooks": its pods are known: add Notebook to kinds`, "resources[5].group: Required value",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if _, err := podtemplate.New(podtemplate.Settings{}, nil); err == nil || !strings.Contains(err.Error(), "kinds: Required value") {
		t.Errorf("New takes settings that review nothing: %v", err)
	}
}

func TestDefinition(t *testing.T) {
	w := newWebhooks(t, []byte("resources: [{group: argoproj.io, version: v1alpha1, resource: rollouts}]"), nil)[0]
	if err := w.Problems(); err != nil {
		t.Error(err)
	}
	if w.FailurePolicy != admissionregistrationv1.Ignore || w.Type != admission.TypeValidating || w.TimeoutSeconds != 2 {
		t.Errorf("it is %+v", w)
	}
	var rules []string
	for _, r := range w.Rules {
		rules = append(rules, r.APIGroups[0]+"/"+r.APIVersions[0]+": "+strings.Join(r.Resources, " "))
	}
	if got := strings.Join(rules, "; "); got != "apps/v1: deployments statefulsets daemonsets replicasets; batch/v1: jobs cronjobs; kubeflow.org/v1: notebooks; argoproj.io/v1alpha1: rollouts" {
		t.Errorf("the rules are %s", got)
	}
}

// deployment returns a request to create a Deployment.
func deployment(raw string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		Resource: deployments, Namespace: cases.Namespace, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)},
	}
}

const aDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"spec":{"containers":[{"name":"app"}]}}}}`

// answering returns the webhook with a preview of its own.
func answering(t testing.TB, preview podtemplate.Preview) admission.Webhook {
	t.Helper()
	webhooks, err := podtemplate.New(podtemplate.DefaultSettings(), []podtemplate.Preview{preview})
	if err != nil {
		t.Fatal(err)
	}
	return webhooks[0]
}

// A fault is not for the API server to repeat: the failure policy admits the object at once.
func TestAFaultIsAnErrorWithoutARetry(t *testing.T) {
	unavailable := admission.Unavailable(errors.New("the watch has not been read"), time.Second)
	w := answering(t, func(context.Context, *admissionv1.AdmissionRequest) ([]string, error) { return nil, unavailable })
	resp, err := w.Handler.Handle(t.Context(), deployment(aDeployment))
	if resp != nil || err == nil || errors.Is(err, unavailable) || !strings.Contains(err.Error(), "the watch has not been read") {
		t.Errorf("%+v, %v", resp, err)
	}
}

func TestWarningsAreBounded(t *testing.T) {
	w := answering(t, func(context.Context, *admissionv1.AdmissionRequest) (all []string, _ error) {
		for range 100 {
			all = append(all, strings.Repeat("ü", len(all)+300), "the same")
		}
		return all, nil
	})
	raw := strings.Replace(aDeployment, "web", strings.Repeat("w", 253), 1)
	resp, err := w.Handler.Handle(t.Context(), deployment(raw))
	if err != nil || !resp.Allowed || len(resp.Warnings) != 2 { // cut, they are the same
		t.Fatalf("%+v, %v", resp, err)
	}
	if n := utf8.RuneCountInString(resp.Warnings[0]); n != 256 || !strings.HasSuffix(resp.Warnings[0], "ü…") || !strings.HasSuffix(resp.Warnings[1], "w… the same") {
		t.Errorf("%d runes: %q", n, resp.Warnings)
	}
}

// The pods are asked about as a dry run in the namespace of the request, whatever the object says.
func TestPodsAreAskedAboutInTheNamespaceOfTheRequest(t *testing.T) {
	var asked []*admissionv1.AdmissionRequest
	w := answering(t, func(_ context.Context, pod *admissionv1.AdmissionRequest) ([]string, error) {
		asked = append(asked, pod)
		return nil, nil
	})
	raw := strings.NewReplacer(`"name":"web"`, `"name":"web","namespace":"secrets"`, `"template":{`, `"template":{"metadata":{"namespace":"secrets"},`).Replace(aDeployment)
	if _, err := w.Handler.Handle(t.Context(), deployment(raw)); err != nil || len(asked) != 1 {
		t.Fatalf("%d, %v", len(asked), err)
	}
	pod := asked[0]
	if pod.Namespace != cases.Namespace || pod.DryRun == nil || !*pod.DryRun || pod.Operation != admissionv1.Create || strings.Contains(string(pod.Object.Raw), "secrets") {
		t.Errorf("%+v\n%s", pod, pod.Object.Raw)
	}
	if raw := string(pod.Object.Raw); !strings.Contains(raw, `"kind":"ReplicaSet"`) || !strings.Contains(raw, `"pod-template-hash":`) {
		t.Errorf("the pod is not that of a ReplicaSet: %s", raw)
	}
}

// Whatever the object and the PodDefaults: it is admitted as it is.
func TestItDeniesAndChangesNothing(t *testing.T) {
	w := answering(t, func(context.Context, *admissionv1.AdmissionRequest) ([]string, error) {
		return []string{"would be refused: x"}, nil
	})
	rapid.Check(t, func(r *rapid.T) {
		part := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		raw := `{"apiVersion":` + part(`"apps/v1"`, `"v1"`, `"a/b/c"`, "1") + `,"kind":` + part(`"Deployment"`, `"CronJob"`, `"List"`, `""`, "null") +
			`,"metadata":` + part("{}", "null", "[]", `{"name":"a","labels":{"a":1}}`, `{"ownerReferences":[{"controller":true}]}`) +
			`,"spec":` + part("{}", "null", "7", `{"template":`+part("{}", "null", `{"spec":{"containers":[{}]}}`, `{"spec":{"containers":7},"metadata":[]}`)+"}") +
			`,"items":` + part("[]", "null", `[{}]`) + "}"
		req := deployment(raw)
		req.Operation = rapid.SampledFrom([]admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect}).Draw(r, "operation")
		req.OldObject.Raw = []byte(part("", raw, "{}"))
		resp := cases.Handle(t, w, req)
		if !resp.Allowed || len(resp.Patch) > 0 || resp.Status != nil {
			r.Fatalf("%s: %+v", raw, resp)
		}
	})
}

// FuzzWorkload sends any valid JSON as both objects of an update.
func FuzzWorkload(f *testing.F) {
	for _, c := range cases.All(f) {
		raw := c.Request(f, deployments)
		f.Add(raw.Object.Raw, raw.OldObject.Raw)
	}
	f.Fuzz(func(t *testing.T, raw, old []byte) {
		if !jsontext.Value(raw).IsValid() { // the wire lets nothing else through
			return
		}
		w := newWebhooks(t, nil, []byte("kind: PodDefault\nmetadata: {name: a, namespace: team-a}\nspec: {selector: {}, env: [{name: A, value: canary}]}"))[0]
		for _, resource := range []metav1.GroupVersionResource{deployments, {Group: "batch", Version: "v1", Resource: "cronjobs"}, {Group: "kubeflow.org", Version: "v1", Resource: "notebooks"}} {
			req := deployment(string(raw))
			req.Resource = resource
			created := cases.Handle(t, w, req)
			for _, warning := range created.Warnings {
				if utf8.RuneCountInString(warning) > 256 || strings.Contains(warning, "canary") && !strings.Contains(string(raw), "canary") {
					t.Fatalf("%q", warning)
				}
			}
			req.Operation, req.OldObject.Raw = admissionv1.Update, old
			changed := cases.Handle(t, w, req)
			req.OldObject.Raw = raw
			same := cases.Handle(t, w, req)
			if !created.Allowed || !changed.Allowed || !same.Allowed || len(created.Patch) > 0 || len(same.Warnings) > 0 {
				t.Fatalf("%+v, %+v, %+v", created, changed, same)
			}
		}
	})
}
