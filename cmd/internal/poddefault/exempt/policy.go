// SPDX-License-Identifier: Apache-2.0

package exempt

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// Verb is the verb of RBAC on a PodDefault or ClusterPodDefault that a user needs to exempt
// pods from it.
const Verb = "exempt"

// PolicyName is the name of the policy of [Policy], and of its binding.
const PolicyName = "exempt.sallyport.io"

var (
	exemptions         = sallyportv1alpha1.Resource(sallyportv1alpha1.ExemptionResource)
	podDefaults        = kubeflowv1alpha1.Resource(kubeflowv1alpha1.PodDefaultResource)
	clusterPodDefaults = sallyportv1alpha1.Resource(sallyportv1alpha1.ClusterPodDefaultResource)
)

// Policy returns the policy that asks, without a server, whether who creates an
// Exemption or makes it wider may exempt from each of its objects, and its binding. What is
// wider is what [Exemption.Wider] says. It has no clock, so it knows no limit of time.
// It belongs to the definition of Exemptions.
func Policy() []runtime.Object {
	covered := "oldObject != null && timestamp(object.spec.until) <= timestamp(oldObject.spec.until) && object.spec.reason == oldObject.spec.reason && " +
		"('*' in oldObject.spec.workloads || object.spec.workloads.all(w, w in oldObject.spec.workloads))"
	forbidden := metav1.StatusReasonForbidden
	var validations []admissionregistrationv1.Validation
	for i := range maxObjects {
		name := fmt.Sprintf("variables.wider[%d]", i)
		validations = append(validations, admissionregistrationv1.Validation{
			Expression: fmt.Sprintf("size(variables.wider) <= %d || (%s.startsWith('%s') ? "+
				"authorizer.group('%s').resource('%s').name(%s.substring(%d)).check('%s').allowed() : "+
				"authorizer.group('%s').resource('%s').namespace(request.namespace).name(%s).check('%s').allowed())",
				i, name, meta.ClusterDecision,
				clusterPodDefaults.Group, clusterPodDefaults.Resource, name, len(meta.ClusterDecision), Verb,
				podDefaults.Group, podDefaults.Resource, name, Verb),
			MessageExpression: fmt.Sprintf("'user \"' + request.userInfo.username + '\" may not exempt pods from ' + %s + '; ask for the verb %s on it, or ask a user who has it'",
				name, Verb),
			Reason: &forbidden,
		})
	}
	fail, equivalent, scope := admissionregistrationv1.Fail, admissionregistrationv1.Equivalent, admissionregistrationv1.NamespacedScope
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: PolicyName},
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
		ObjectMeta: metav1.ObjectMeta{Name: PolicyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: PolicyName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	return []runtime.Object{policy, binding}
}
