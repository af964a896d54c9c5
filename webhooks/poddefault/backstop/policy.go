// SPDX-License-Identifier: Apache-2.0

// Package backstop stands in for PodDefault injection while no server answers: a
// ValidatingAdmissionPolicy refuses exactly the pods that would have been injected, and
// the webhook may fail open. What the policy reads is one object in each namespace,
// which is compiled from PodDefaults and ClusterPodDefaults; see [Compile] and
// [Controller].
//
// It does not cover an object that is written while every server is down, and the
// annotation that it looks for is no security boundary: anybody may set it.
package backstop

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
)

// CRD is the name of the definition of what the policy reads.
const CRD = sallyportv1alpha1.PodDefaultIndexResource + "." + sallyportv1alpha1.GroupName

// The expressions are for Kubernetes 1.30 and later: they use neither comprehensions of
// two variables nor flatten, which came after it.
const (
	// listedExpression are the objects that were decided on.
	listedExpression = "object.metadata.?annotations[?'" + poddefault.DecisionsAnnotation + "'].orValue('').split(',')"
	// missingExpression are those that select the pod and were not decided on, in lists of
	// which each may be empty. A pod is looked up by its own few labels.
	missingExpression = "[variables.labels].map(L, " +
		"([params.?spec.?rest.orValue([])] + L.map(k, " +
		"params.?spec.?terms[?k].orValue([]) + params.?spec.?terms[?(k + '=' + L[k])].orValue([])))" +
		".map(names, names.filter(n, " +
		"!(n in variables.listed) && " +
		"params.?spec.?selectors[?n].orValue([]).all(r, " +
		"r.operator == 'In' ? r.key in L && L[r.key] in r.values : " +
		"r.operator == 'NotIn' ? !(r.key in L && L[r.key] in r.values) : " +
		"r.operator == 'Exists' ? r.key in L : !(r.key in L))" +
		")))[0]"
	message = "'PodDefaults select this pod and were not applied, because Sallyport did not answer: ' + " +
		"variables.missing.filter(names, size(names) > 0).map(names, names.join(', ')).join(', ') + " +
		"'. Create it again once Sallyport runs'"
)

// New describes the policy. Ready is nil once the indexes are there in all namespaces
// for which the webhook is.
func New(ready func() error) *admission.Backstop {
	forbidden := metav1.StatusReasonForbidden
	return &admission.Backstop{
		CRD:       CRD,
		Param:     admissionregistrationv1.ParamKind{APIVersion: sallyportv1alpha1.GroupVersion.String(), Kind: sallyportv1alpha1.PodDefaultIndexKind},
		ParamName: sallyportv1alpha1.PodDefaultIndexName,
		// To exclude a pod is also the way to create it while no server answers.
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "not-excluded", Expression: "object.metadata.?annotations[?'" + poddefault.ExcludeAnnotation + "'].orValue('') != 'true'"},
			{Name: "not-a-mirror-pod", Expression: "!has(object.metadata.annotations) || !('" + poddefault.MirrorAnnotation + "' in object.metadata.annotations)"},
		},
		Variables: []admissionregistrationv1.Variable{
			{Name: "labels", Expression: "object.metadata.?labels.orValue({})"},
			{Name: "listed", Expression: listedExpression},
			{Name: "missing", Expression: missingExpression},
		},
		Validations: []admissionregistrationv1.Validation{{
			Expression:        "variables.missing.all(names, size(names) == 0)",
			MessageExpression: message,
			Message:           "PodDefaults select this pod and were not applied, because Sallyport did not answer; create it again once Sallyport runs",
			Reason:            &forbidden,
		}},
		Ready: ready,
	}
}
