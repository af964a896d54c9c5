// SPDX-License-Identifier: Apache-2.0

package author

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// ExemptPolicyName is the name of the policy of [ExemptPolicy], and of its binding.
const ExemptPolicyName = "exempt.sallyport.io"

// maxExempt is maxItems of podDefaults in the definition of Exemptions. The API server
// allows a policy 10,000,000 units of cost and an expression 1,000,000, and an access review
// costs 350,000: hence one validation for each object, and no more than 28 objects.
const maxExempt = 16

// ExemptPolicy returns the policy that asks, without a server, whether who creates an
// Exemption or makes it wider may exempt from each of its objects, and its binding. What is
// wider is what [exempt.Exemption.Wider] says. It has no clock, so it knows no limit of time.
// It belongs to the definition of Exemptions.
func ExemptPolicy() []runtime.Object {
	covered := "oldObject != null && timestamp(object.spec.until) <= timestamp(oldObject.spec.until) && object.spec.reason == oldObject.spec.reason && " +
		"('*' in oldObject.spec.workloads || object.spec.workloads.all(w, w in oldObject.spec.workloads))"
	forbidden := metav1.StatusReasonForbidden
	var validations []admissionregistrationv1.Validation
	for i := range maxExempt {
		name := fmt.Sprintf("variables.wider[%d]", i)
		validations = append(validations, admissionregistrationv1.Validation{
			Expression: fmt.Sprintf("size(variables.wider) <= %d || (%s.startsWith('%s') ? "+
				"authorizer.group('%s').resource('%s').name(%s.substring(%d)).check('%s').allowed() : "+
				"authorizer.group('%s').resource('%s').namespace(request.namespace).name(%s).check('%s').allowed())",
				i, name, meta.ClusterDecision,
				clusterPodDefaults.Group, clusterPodDefaults.Resource, name, len(meta.ClusterDecision), ExemptVerb,
				podDefaults.Group, podDefaults.Resource, name, ExemptVerb),
			MessageExpression: fmt.Sprintf("'user \"' + request.userInfo.username + '\" may not exempt pods from ' + %s + '; ask for the verb %s on it, or ask a user who has it'",
				name, ExemptVerb),
			Reason: &forbidden,
		})
	}
	fail, equivalent, scope := admissionregistrationv1.Fail, admissionregistrationv1.Equivalent, admissionregistrationv1.NamespacedScope
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: ExemptPolicyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: &equivalent,
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{exemptions.Group}, APIVersions: []string{sallyportv1alpha1.Version}, Resources: []string{exemptions.Resource}, Scope: &scope,
					},
				}}},
				NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
			},
			Variables: []admissionregistrationv1.Variable{
				{Name: "covered", Expression: covered},
				{Name: "wider", Expression: "object.spec.podDefaults.filter(o, !variables.covered || !(o in oldObject.spec.podDefaults))"},
			},
			Validations: validations,
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: ExemptPolicyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: ExemptPolicyName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	return []runtime.Object{policy, binding}
}
