// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
)

func TestLabelsAreFoundForEverySelectorThatSelectsSomething(t *testing.T) {
	for text, possible := range map[string]bool{
		"": true, "a=b": true, "a": true, "!a": true, "a in (b,c)": true, "a in (b,c),a notin (b)": true, "a,a notin (any-0)": true,
		"a in (b,c),a in (c,d)": true, "a notin (b)": true, "a in (b),!a": false, "a in (b),a notin (b)": false, "a in (b),a in (c)": false,
	} {
		selector, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		set, err := selected(selector)
		if (err == nil) != possible || err == nil && !parsed.Matches(labels.Set(set)) {
			t.Errorf("%q: %v, %v", text, set, err)
		}
	}
	if set, err := selected(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "a", Operator: metav1.LabelSelectorOpExists}, {Key: "a", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"", "any-0"}},
	}}); err != nil || set["a"] == "" || set["a"] == "any-0" {
		t.Errorf("%v, %v", set, err)
	}
}

func TestNoNamespaceFillsASample(t *testing.T) {
	var objects []*manifest.Object
	for i := range 30 {
		o := &manifest.Object{}
		o.Namespace, o.Name = "a", fmt.Sprint(i)
		objects = append(objects, o)
	}
	last := &manifest.Object{}
	last.Namespace, last.Name = "b", "x"
	turns := inTurn(append(objects, last))
	if turns[0].Namespace != "a" || turns[1] != last || len(turns) != 31 {
		t.Errorf("the first are %s and %s of %d", turns[0].Namespace, turns[1].Namespace, len(turns))
	}
}

func TestErrorsOfOthersAreUnknownAndOwnOnesAreNot(t *testing.T) {
	allowed, denied := &review.Outcome{Result: &replay.Result{}}, &review.Outcome{Result: &replay.Result{Denied: &metav1.Status{}}}
	gk := schema.GroupKind{Kind: "Pod"}
	invalidPod := apierrors.NewInvalid(gk, "x", field.ErrorList{field.Invalid(field.NewPath("spec", "containers").Index(0).Child("env"), "a secret", "too long")})
	for name, tc := range map[string]struct {
		simulated *review.Outcome
		err       error
		want      Answer
	}{
		"side effects of another webhook": {allowed, apierrors.NewBadRequest(`admission webhook "x.y.z" does not support dry run`), Unknown},
		"a quota":                         {allowed, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("exceeded quota")), Unknown},
		"another webhook":                 {allowed, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New(`admission webhook "x.y.z" denied the request: no`)), Unknown},
		"a call that fails":               {allowed, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: Post \"https://host/a secret?timeout=5s\": refused", poddefault.Name)), Differs},
		"a denial that is not foreseen":   {allowed, fmt.Errorf("admission webhook %q denied the request: no", poddefault.Name), Differs},
		"a denial that is foreseen":       {denied, fmt.Errorf("admission webhook %q denied the request: no", poddefault.Name), Proven},
		"a quota before a denial":         {denied, errors.New("exceeded quota"), Unknown},
		"the backstop":                    {allowed, errors.New("ValidatingAdmissionPolicy 'hooks' with binding 'hooks' denied request: no"), Differs},
		"an invalid pod":                  {allowed, invalidPod, Differs},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Prover{Policy: "hooks"}
			answer, reason := p.refused(tc.simulated, dryrun.Judge(tc.err, admissionv1.Create))
			if answer != tc.want || strings.Contains(reason, "a secret") {
				t.Errorf("%s: %s", answer, reason)
			}
		})
	}
}

// TestWhatAppliesToNoPodSaysWhy: also if other objects apply to the pod.
func TestWhatAppliesToNoPodSaysWhy(t *testing.T) {
	index, known := source.NewIndex(), map[string]*injection.Default{}
	objects, _, err := manifest.Parse("stdin", []byte(`
{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {namespace: team-a, name: applies}, spec: {selector: {}, env: [{name: A, value: x}]}}
---
{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {namespace: team-a, name: exempt}, spec: {selector: {}, env: [{name: B, value: x}]}}
---
{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {namespace: team-a, name: invalid}, spec: {selector: {}, env: [{name: C, value: x}, {name: C, value: s3cret}]}}
---
{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {namespace: team-a, name: lacks}, spec: {selector: {}, volumeMounts: [{name: disk, mountPath: /data}]}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: team-a, name: p}, spec: {containers: [{name: main, image: x}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects[:4] {
		if known[o.Name], err = injection.New(o); err != nil {
			t.Fatal(err)
		}
		index.Set(known[o.Name].Plan)
	}
	exemption, err := exempt.New(&sallyportv1alpha1.Exemption{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "e"}, Spec: sallyportv1alpha1.ExemptionSpec{
		Workloads: []string{"*"}, PodDefaults: []string{"exempt"}, Until: metav1.NewTime(time.Now().Add(time.Hour)), Reason: "a test",
	}})
	if err != nil {
		t.Fatal(err)
	}
	index.SetExemptions("team-a", []*exempt.Exemption{exemption})
	webhook, err := poddefault.New(index, poddefault.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	out, err := review.Decide(t.Context(), review.Asker{Operation: admissionv1.Create, Namespace: "team-a"}.Ask(objects[4], nil), []admission.Webhook{webhook})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"applies": "", "exempt": "exempt until ", "invalid": "it can never work: ", "lacks": ""} {
		if got := idle(known[name], out); !strings.HasPrefix(got, want) || want == "" && got != "" || strings.Contains(got, "s3cret") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
