// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// guarded returns a webhook that fails closed and has a backstop.
func guarded(name string) admission.Webhook {
	w := webhook(admission.TypeMutating, name)
	w.FailurePolicy, w.AllowWedge = admissionregistrationv1.Fail, "a test"
	w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	w.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "own", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	w.Backstop = &admission.Backstop{
		ParamName:       "index",
		Param:           admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "PodTemplate"},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "not-mirror", Expression: "true"}},
		Variables:       []admissionregistrationv1.Variable{{Name: "x", Expression: "1"}},
		Validations:     []admissionregistrationv1.Validation{{Expression: "variables.x == 1", Message: "no"}},
	}
	return w
}

func TestABackstopHasTheSelectorsOfItsWebhookWhichFailsOpen(t *testing.T) {
	w := guarded("inject.pods.example.com")
	objects, err := registration.Manifests(outside("hooks"), []admission.Webhook{w}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
	}
	want := []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingWebhookConfiguration"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Fatal(diff)
	}
	policy := objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy)
	binding := objects[1].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
	for what, resources := range map[string]*admissionregistrationv1.MatchResources{"policy": policy.Spec.MatchConstraints, "binding": binding.Spec.MatchResources} {
		if diff := cmp.Diff(w.NamespaceSelector, resources.NamespaceSelector) + cmp.Diff(w.ObjectSelector, resources.ObjectSelector); diff != "" {
			t.Errorf("selectors of the %s: %s", what, diff)
		}
	}
	if rules := policy.Spec.MatchConstraints.ResourceRules; len(rules) != 1 || rules[0].Resources[0] != "pods" {
		t.Errorf("rules: %+v", rules)
	}
	if *policy.Spec.FailurePolicy != admissionregistrationv1.Fail || *policy.Spec.ParamKind != w.Backstop.Param {
		t.Errorf("policy: %+v", policy.Spec)
	}
	if diff := cmp.Diff(w.Backstop.Validations, policy.Spec.Validations) + cmp.Diff(w.Backstop.Variables, policy.Spec.Variables); diff != "" {
		t.Error(diff)
	}
	if ref := binding.Spec.ParamRef; ref.Name != "index" || ref.Namespace != "" || *ref.ParameterNotFoundAction != admissionregistrationv1.AllowAction {
		t.Errorf("param: %+v", ref)
	}
	if got := failurePolicy(objects); got != admissionregistrationv1.Ignore {
		t.Errorf("failure policy %s", got)
	}
	if w.FailurePolicy != admissionregistrationv1.Fail {
		t.Error("the definition has changed")
	}
}

func failurePolicy(objects []runtime.Object) admissionregistrationv1.FailurePolicyType {
	for _, object := range objects {
		if configuration, ok := object.(*admissionregistrationv1.MutatingWebhookConfiguration); ok {
			return *configuration.Webhooks[0].FailurePolicy
		}
	}
	return ""
}

func TestWithoutAPolicyTheWebhookFailsClosed(t *testing.T) {
	disabled := guarded("inject.pods.example.com")
	off := *disabled.Backstop
	off.Disabled = true
	disabled.Backstop = &off
	for name, manifests := range map[string]func() ([]runtime.Object, error){
		"a backstop that is disabled": func() ([]runtime.Object, error) {
			return registration.Manifests(outside("hooks"), []admission.Webhook{disabled}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifests()
			if err != nil || len(objects) != 1 || failurePolicy(objects) != admissionregistrationv1.Fail {
				t.Errorf("%v: %v", err, objects)
			}
		})
	}
}

func TestProblemsOfABackstopAreNamed(t *testing.T) {
	validating, empty, wedging := webhook(admission.TypeValidating, "check.pods.example.com"), guarded("inject.pods.example.com"), guarded("inject.pods.example.com")
	validating.Backstop, empty.Backstop = guarded("x.pods.example.com").Backstop, &admission.Backstop{}
	wedging.Backstop.Param = admissionregistrationv1.ParamKind{APIVersion: "example.com/v1", Kind: "Index"}
	for name, test := range map[string]struct {
		webhooks []admission.Webhook
		want     []string
	}{
		"two of them":             {[]admission.Webhook{guarded("a.pods.example.com"), guarded("b.pods.example.com")}, []string{`"a.pods.example.com" and "b.pods.example.com" both have a backstop`}},
		"of a validating webhook": {[]admission.Webhook{validating}, []string{"is for mutating webhooks only"}},
		"one of a CRD's kind":     {[]admission.Webhook{wedging}, []string{"example.com/v1 is not in the core group"}},
		"an empty one":            {[]admission.Webhook{empty}, []string{"apiVersion, kind and name are required", "validations are required"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := registration.Manifests(outside("hooks"), test.webhooks, nil)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
		})
	}
}
