// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
)

const testNamespace = "team-a"

// policy evaluates the result of New with the API server's own code, as the oldest
// Kubernetes with such policies.
func policy(t testing.TB) validating.Validator {
	t.Helper()
	described := New(nil)
	options := cel.OptionalVariableDeclarations{HasParams: true, HasAuthorizer: true}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 30)))
	if err != nil {
		t.Fatal(err)
	}
	var variables []cel.NamedExpressionAccessor
	for _, v := range described.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, options, environment.NewExpressions)
	var conditions, validations, messages []cel.ExpressionAccessor
	for i := range described.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&described.MatchConditions[i]))
	}
	for _, v := range described.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	fail := admissionregistrationv1.Fail
	compile := func(expressions []cel.ExpressionAccessor, authorizer bool) cel.ConditionEvaluator {
		return compiler.CompileCondition(expressions, cel.OptionalVariableDeclarations{HasParams: true, HasAuthorizer: authorizer}, environment.NewExpressions)
	}
	return validating.NewValidator(compile(validations, true), matchconditions.NewMatcher(compile(conditions, true), &fail, "policy", "validate", "test"),
		compile(nil, true), compile(messages, false), &fail, nil)
}

// verdict returns the policy's refusal message, or "".
func verdict(t interface{ Fatalf(string, ...any) }, p validating.Validator, index Index, pod *corev1.Pod) string {
	param := index.Template(testNamespace)
	kind, resource := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	attributes := apiserveradmission.NewAttributesRecord(pod, nil, kind, testNamespace, pod.Name, resource, "", apiserveradmission.Create, nil, false, nil)
	versioned := &apiserveradmission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: apiserveradmission.NewLazyObject(pod)}
	result := p.Validate(context.Background(), resource, versioned, param, nil, celconfig.RuntimeCELCostBudget, nil)
	var messages []string
	for _, decision := range result.Decisions {
		if decision.Evaluation == validating.EvalError {
			t.Fatalf("the policy failed: %s", decision.Message)
		}
		if decision.Action == validating.ActionDeny {
			messages = append(messages, decision.Message)
		}
	}
	return strings.Join(messages, "\n")
}

// world is a drawn case.
type world struct {
	podDefaults []*kubeflowv1alpha1.PodDefault
	cluster     []*sallyportv1alpha1.ClusterPodDefault
	namespace   map[string]string
	pod         *corev1.Pod
}

var (
	drawKey   = rapid.SampledFrom([]string{"a", "example.com/b", "example.com/p1", "example.com/p10", "p2"})
	drawValue = rapid.SampledFrom([]string{"", "1", "2"})
	// PodDefaults never add what a pod has, so there are no conflicts.
	drawAdded = rapid.SampledFrom([]string{"d", "e"})
)

func drawSelector(t *rapid.T) metav1.LabelSelector {
	key := rapid.OneOf(drawKey, drawKey, drawAdded)
	var s metav1.LabelSelector
	for range rapid.IntRange(0, 3).Draw(t, "terms") {
		if rapid.Bool().Draw(t, "is a label") {
			if s.MatchLabels == nil {
				s.MatchLabels = map[string]string{}
			}
			s.MatchLabels[key.Draw(t, "key")] = drawValue.Draw(t, "value")
			continue
		}
		r := metav1.LabelSelectorRequirement{Key: key.Draw(t, "key"), Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{
			metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist, "Like",
		}).Draw(t, "operator")}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = rapid.SliceOfN(drawValue, 1, 3).Draw(t, "values")
			if r.Operator == metav1.LabelSelectorOpIn && rapid.Bool().Draw(t, "many values") {
				for i := range maxTerms {
					r.Values = append(r.Values, fmt.Sprintf("other-%d", i))
				}
			}
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return s
}

func drawSpec(t *rapid.T, name string) kubeflowv1alpha1.PodDefaultSpec {
	spec := kubeflowv1alpha1.PodDefaultSpec{
		Selector: drawSelector(t), Env: []corev1.EnvVar{{Name: name, Value: "1"}},
		Mode: rapid.SampledFrom([]kubeflowv1alpha1.Mode{"", "", kubeflowv1alpha1.ModeAudit}).Draw(t, "mode"),
	}
	if rapid.IntRange(0, 2).Draw(t, "adds a label") == 0 {
		spec.Labels = map[string]string{drawAdded.Draw(t, "added"): "1"}
	}
	return spec
}

func drawWorld(t *rapid.T) *world {
	w := &world{namespace: map[string]string{corev1.LabelMetadataName: testNamespace}, pod: &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: testNamespace, Labels: rapid.MapOfN(drawKey, drawValue, 0, 3).Draw(t, "labels")},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i"}}},
	}}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p1", "p2", "p3", "p4"}), 0, 4, rapid.ID).Draw(t, "PodDefaults") {
		w.podDefaults = append(w.podDefaults, &kubeflowv1alpha1.PodDefault{
			ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name}, Spec: drawSpec(t, name),
		})
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"c1", "c2"}), 0, 2, rapid.ID).Draw(t, "ClusterPodDefaults") {
		cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: name}}
		cpd.Spec.PodDefaultSpec, cpd.Spec.AllowExclude = drawSpec(t, name), rapid.Bool().Draw(t, "may be excluded")
		if rapid.Bool().Draw(t, "selects namespaces") {
			cpd.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": drawValue.Draw(t, "tier")}}
		}
		w.cluster = append(w.cluster, cpd)
	}
	if rapid.Bool().Draw(t, "namespace has a tier") {
		w.namespace["tier"] = drawValue.Draw(t, "its tier")
	}
	w.pod.Annotations = map[string]string{}
	if rapid.IntRange(0, 3).Draw(t, "excluded") == 0 {
		w.pod.Annotations[meta.ExcludeAnnotation] = rapid.SampledFrom([]string{"true", "false"}).Draw(t, "exclude")
	}
	if rapid.IntRange(0, 9).Draw(t, "mirror") == 0 {
		w.pod.Annotations[meta.MirrorAnnotation] = "x"
	}
	return w
}

// index returns the policy's index, inject runs the webhook.
func (w *world) index() Index {
	var entries []*Entry
	for _, pd := range w.podDefaults {
		if e := NewEntry(plan.Compile(pd)); e != nil && e.selects(w.namespace) {
			entries = append(entries, e)
		}
	}
	for _, cpd := range w.cluster {
		if e := NewEntry(plan.CompileCluster(cpd)); e != nil && e.selects(w.namespace) {
			entries = append(entries, e)
		}
	}
	return Compile(entries)
}

// inject returns the pod after the webhook.
func (w *world) inject(t *rapid.T) *corev1.Pod {
	index := source.NewIndex()
	index.SetNamespace(testNamespace, labels.Set(w.namespace))
	for _, pd := range w.podDefaults {
		index.Set(plan.Compile(pd))
	}
	for _, cpd := range w.cluster {
		index.Set(plan.CompileCluster(cpd))
	}
	webhook, err := poddefault.New(index, poddefault.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(w.pod)
	if err != nil {
		t.Fatal(err)
	}
	response, err := webhook.Handler.Handle(context.Background(), &admissionv1.AdmissionRequest{
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: testNamespace,
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	})
	if err != nil || !response.Allowed {
		t.Fatalf("the webhook does not admit the pod: %v %+v", err, response)
	}
	if len(response.Patch) > 0 {
		encoded, err := json.Marshal(response.Patch)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatchv4.DecodePatch(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// injected reports whether the webhook has added anything besides its list of
// decisions.
func injected(pod *corev1.Pod) bool { return len(pod.Spec.Containers[0].Env) > 0 }

// TestThePolicyRefusesExactlyWhatTheWebhookWouldChange compares the policy, evaluated
// like in the API server, with the webhook.
func TestThePolicyRefusesExactlyWhatTheWebhookWouldChange(t *testing.T) {
	p := policy(t)
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		index := w.index()
		changed := w.inject(t)
		refusal := verdict(t, p, index, w.pod)
		wanted := injected(changed) && w.pod.Annotations[meta.ExcludeAnnotation] != "true"
		if refused := refusal != ""; refused != wanted {
			t.Fatalf("the pod is refused: %t (%s); it should be: %t\n%+v", refused, refusal, wanted, index)
		}
		if text := verdict(t, p, index, changed); text != "" {
			t.Fatalf("a pod that was injected is refused: %s", text)
		}
		w.podDefaults = rapid.Permutation(w.podDefaults).Draw(t, "another order")
		if again := w.index(); fmt.Sprint(index) != fmt.Sprint(again) {
			t.Fatalf("the order of objects shows in the index:\n%+v\n%+v", index, again)
		}
	})
}

// TestARefusalNamesTheObjects checks the message, and pods on which only some objects
// were considered.
func TestARefusalNamesTheObjects(t *testing.T) {
	p := policy(t)
	gpu := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	gpu.Spec.Selector.MatchLabels = map[string]string{"gpu": "true"}
	proxy := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "proxy"}}
	index := Compile([]*Entry{NewEntry(plan.Compile(gpu)), NewEntry(plan.CompileCluster(proxy))})
	goneNow := "gpu#" + plan.Compile(gpu).Version()
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		message             string
	}{
		"nothing was decided":                    {map[string]string{"gpu": "true"}, nil, "did not answer: cluster/proxy, gpu. Create"},
		"one is missing":                         {map[string]string{"gpu": "true"}, map[string]string{meta.DecisionsAnnotation: "cluster/proxy"}, "kubectl sallyport explain"},
		"all are listed":                         {map[string]string{"gpu": "true"}, map[string]string{meta.DecisionsAnnotation: "cluster/proxy,gpu,other"}, ""},
		"a name that begins like another one":    {map[string]string{"gpu": "true"}, map[string]string{meta.DecisionsAnnotation: "cluster/proxy,gpu2"}, "kubectl sallyport explain"},
		"one is gone, the other is listed":       {map[string]string{"gpu": "true"}, map[string]string{meta.DecisionsAnnotation: "cluster/proxy", meta.GoneAnnotation: goneNow}, ""},
		"both are gone":                          {map[string]string{"gpu": "true"}, map[string]string{meta.GoneAnnotation: "cluster/proxy#" + plan.CompileCluster(proxy).Version() + "," + goneNow}, ""},
		"an older one of that name is gone":      {map[string]string{"gpu": "true"}, map[string]string{meta.DecisionsAnnotation: "cluster/proxy", meta.GoneAnnotation: "gpu#older0"}, "kubectl sallyport explain"},
		"a pod that excludes itself is admitted": {map[string]string{"gpu": "true"}, map[string]string{meta.ExcludeAnnotation: "true"}, ""},
		"a pod that excludes itself by halves":   {map[string]string{"gpu": "true"}, map[string]string{meta.ExcludeAnnotation: "yes"}, "did not answer: cluster/proxy, gpu. Create"},
		"a mirror pod is for nobody":             {map[string]string{"gpu": "true"}, map[string]string{meta.MirrorAnnotation: ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := verdict(t, p, index, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: test.labels, Annotations: test.annotations}})
			if (got == "") != (test.message == "") || !strings.Contains(got, test.message) {
				t.Errorf("message: %q", got)
			}
		})
	}
}

// TestThousandsOfObjectsAreWithinTheBudget searches a full index.
func TestThousandsOfObjectsAreWithinTheBudget(t *testing.T) {
	p := policy(t)
	var entries []*Entry
	for i := range 10_000 {
		pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pd-%05d", i)}}
		pd.Spec.Selector.MatchLabels = map[string]string{"team": fmt.Sprint(i / 300), "tier": "1", "all": "the-same"}
		entries = append(entries, NewEntry(plan.Compile(pd)))
	}
	index := Compile(entries)
	if encoded, err := json.Marshal(index); err != nil || len(encoded) > maxIndexBytes {
		t.Fatalf("the index has %d bytes (%v)", len(encoded), err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "3", "tier": "1", "all": "the-same"}}}
	if text := verdict(t, p, index, pod); text == "" {
		t.Error("a pod that 300 objects select is admitted")
	}
	var names []string
	for i := range entries {
		names = append(names, entries[i].decision)
	}
	pod.Annotations = map[string]string{meta.DecisionsAnnotation: strings.Join(names[900:1200], ",")}
	if text := verdict(t, p, index, pod); text != "" {
		t.Errorf("a pod with 300 decisions is refused: %s", text)
	}
}

// TestEachOfManyIsFound has labels that need pages of several kinds.
func TestEachOfManyIsFound(t *testing.T) {
	p := policy(t)
	var entries []*Entry
	add := func(name string, labels map[string]string) {
		pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pd.Spec.Selector.MatchLabels = labels
		entries = append(entries, NewEntry(plan.Compile(pd)))
	}
	for i := range 300 {
		add(fmt.Sprintf("add-secret-%03d", i), map[string]string{fmt.Sprintf("use-add-secret-%03d", i): "true"})
		add(fmt.Sprintf("volume-%d", i), map[string]string{fmt.Sprintf("example.com/volume-%d", i): "true"})
		add(fmt.Sprintf("team-%d", i), map[string]string{"team": fmt.Sprint(i)})
		add(fmt.Sprintf("other-%d", i), map[string]string{strings.Repeat(fmt.Sprint(i), 15): ""})
	}
	index := Compile(entries)
	if len(index.Pages) < 10 || len(index.Pages) > 400 {
		t.Errorf("%d pages", len(index.Pages))
	}
	for i := 0; i < len(entries); i += 7 {
		e := entries[i]
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{e.requirements[0].Key: e.requirements[0].Values[0], "app": "x"}}}
		if verdict(t, p, index, pod) == "" {
			t.Errorf("%s is not found", e.decision)
		}
		pod.Annotations = map[string]string{meta.DecisionsAnnotation: e.decision}
		if text := verdict(t, p, index, pod); text != "" {
			t.Errorf("%s: another is found too", e.decision)
		}
		pod.Annotations, pod.Labels = nil, map[string]string{e.requirements[0].Key: "another", e.requirements[0].Key + "x": e.requirements[0].Values[0]}
		if text := verdict(t, p, index, pod); text != "" {
			t.Errorf("%s is found by another label", e.decision)
		}
	}
}
