// SPDX-License-Identifier: Apache-2.0

// Package backstop protects PodDefault injection while no server answers. A
// ValidatingAdmissionPolicy refuses exactly the pods that would have been injected, so
// the webhook may fail open. The policy reads one object per namespace, compiled from
// PodDefaults and ClusterPodDefaults; see [plan.Compile] and [Controller].
//
// The policy does not cover objects written while every server is down. The annotation
// that it looks for is not a security boundary, because anyone may set it.
package backstop

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// The expressions support Kubernetes 1.30 and later. They avoid two-variable
// comprehensions and flatten, which are newer.
const (
	// exemptExpression: excluding a pod also allows creating it while no server
	// answers.
	exemptExpression = "[object.metadata.?annotations.orValue({})].exists(a, " +
		"a[?'" + meta.ExcludeAnnotation + "'].orValue('') == 'true' || '" + meta.MirrorAnnotation + "' in a)"
	// listedExpression yields the objects already considered for the pod.
	listedExpression = "object.metadata.?annotations[?'" + meta.DecisionsAnnotation + "'].orValue('').split(',')"
	// goneExpression yields objects that a server knows to be gone, or to select other
	// pods now, before the index reflects that.
	goneExpression = "object.metadata.?annotations[?'" + meta.GoneAnnotation + "'].orValue('').split(',')"
	// foundExpression yields the objects filed under the pod's labels, and the objects
	// without a label.
	foundExpression = "(variables.lists.filter(c, c.name == '" + restList + "').map(c, c.?args.orValue([]).join(',')) + " +
		"variables.labels.map(k, [size(variables.from.filter(f, f <= k)) - 1].filter(i, i >= 0 && k.startsWith(variables.prefix[i]))" +
		".map(i, ['', '=' + variables.labels[k]]" +
		".map(v, variables.terms[i].split(';' + k.substring(size(variables.prefix[i])) + v + ':', 2))" +
		".filter(s, size(s) == 2).map(s, s[1].split(';', 2)[0].split(',')" +
		".map(o, o.split(' ').map(w, w.startsWith('@') ? k.substring(int(w.substring(1).split('#')[0])) + '#' + w.split('#')[1] : w).join(' ')).join(','))" +
		".join(',')).join(','))" +
		").join(',').split(',').filter(o, o != '')"
	// missingExpression yields the found objects that select the pod, were not
	// considered and are not gone. What stands for objects without room counts unless a
	// server has considered any object for the pod.
	missingExpression = "[variables.labels].map(L, variables.found.filter(o, " +
		"(o.startsWith('" + omitted + "') ? variables.listed == [''] : !(o.split('#')[0] in variables.listed)) && !(o.split(' ')[0] in variables.gone) && " +
		"o.split(' ').all(r, [r.split('|')].all(s, [s[0].substring(1)].all(k, " +
		"r.startsWith('=') ? k in L && L[k] in s : " +
		"r.startsWith('!') ? !(k in L && L[k] in s) : " +
		"r.startsWith('+') ? k in L : " +
		"r.startsWith('-') ? !(k in L) : true)))))[0]"
	// messageExpression is also evaluated for pods that pass, so it looks nothing up
	// for pods that were already considered.
	messageExpression = "variables.listed != [''] ? '" + message + "' : " +
		"'PodDefaults select this pod and were not applied, because Sallyport did not answer: ' + " +
		"variables.missing.map(o, o.startsWith('" + omitted + "') ? '" + unknown + "' : o.split('#')[0]).join(', ') + '. Create it again once Sallyport runs'"
	unknown = "perhaps one of those that are too many for the index of the namespace"
	message = "PodDefaults select this pod and were not applied: Sallyport did not answer, or knew not all of them yet. " +
		"Create it again once Sallyport runs; kubectl sallyport explain names them"
)

// listExpression yields one of the lists of an index, or an empty list if someone
// removed it.
func listExpression(name string) string {
	return "(variables.lists.filter(c, c.name == '" + name + "').map(c, c.?args.orValue([])) + [[]])[0]"
}

// New describes the policy. Ready returns nil once every selected namespace has its
// index.
func New(ready func() error) *admission.Backstop {
	forbidden := metav1.StatusReasonForbidden
	return &admission.Backstop{
		Param:     admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "PodTemplate"},
		ParamName: TemplateName,
		Variables: []admissionregistrationv1.Variable{
			{Name: "exempt", Expression: exemptExpression},
			{Name: "labels", Expression: "object.metadata.?labels.orValue({})"},
			{Name: "listed", Expression: listedExpression},
			{Name: "gone", Expression: goneExpression},
			{Name: "lists", Expression: "params.template.spec.containers"},
			{Name: "from", Expression: listExpression(fromList)},
			{Name: "prefix", Expression: listExpression(prefixList)},
			{Name: "terms", Expression: listExpression(termsList)},
			{Name: "found", Expression: foundExpression},
			{Name: "missing", Expression: missingExpression},
		},
		Validations: []admissionregistrationv1.Validation{{
			Expression:        "variables.exempt || size(variables.missing) == 0",
			MessageExpression: messageExpression,
			Message:           message,
			Reason:            &forbidden,
		}},
		Ready: ready,
	}
}
