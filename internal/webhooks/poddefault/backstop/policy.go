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
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// The expressions are for Kubernetes 1.30 and later: they use neither comprehensions of
// two variables nor flatten, which came after it.
const (
	// exemptExpression: to exclude a pod is also the way to create it while no server answers.
	exemptExpression = "[object.metadata.?annotations.orValue({})].exists(a, " +
		"a[?'" + poddefault.ExcludeAnnotation + "'].orValue('') == 'true' || '" + poddefault.MirrorAnnotation + "' in a)"
	// listedExpression are the objects that were decided on.
	listedExpression = "object.metadata.?annotations[?'" + poddefault.DecisionsAnnotation + "'].orValue('').split(',')"
	// goneExpression are those of which a server knows that they are gone, or select other
	// pods, where the index does not say so yet.
	goneExpression = "object.metadata.?annotations[?'" + poddefault.GoneAnnotation + "'].orValue('').split(',')"
	// foundExpression are those that are filed under the pod's few labels, and those
	// that are not filed.
	foundExpression = "(variables.lists.filter(c, c.name == '" + restList + "').map(c, c.?args.orValue([]).join(',')) + " +
		"variables.labels.map(k, [size(variables.from.filter(f, f <= k)) - 1].filter(i, i >= 0 && k.startsWith(variables.prefix[i]))" +
		".map(i, ['', '=' + variables.labels[k]]" +
		".map(v, variables.terms[i].split(';' + k.substring(size(variables.prefix[i])) + v + ':', 2))" +
		".filter(s, size(s) == 2).map(s, s[1].split(';', 2)[0].split(',')" +
		".map(o, o.split(' ').map(w, w.startsWith('@') ? k.substring(int(w.substring(1).split('#')[0])) + '#' + w.split('#')[1] : w).join(' ')).join(','))" +
		".join(',')).join(','))" +
		").join(',').split(',').filter(o, o != '')"
	// missingExpression are those of them that select the pod, were not decided on, and are
	// not gone.
	missingExpression = "[variables.labels].map(L, variables.found.filter(o, !(o.split('#')[0] in variables.listed) && !(o.split(' ')[0] in variables.gone) && " +
		"o.split(' ').all(r, [r.split('|')].all(s, [s[0].substring(1)].all(k, " +
		"r.startsWith('=') ? k in L && L[k] in s : " +
		"r.startsWith('!') ? !(k in L && L[k] in s) : " +
		"r.startsWith('+') ? k in L : " +
		"r.startsWith('-') ? !(k in L) : true)))))[0]"
	// messageExpression is evaluated for pods that pass, too, so that it looks nothing up
	// for those on which something was decided.
	messageExpression = "variables.listed != [''] ? '" + message + "' : " +
		"'PodDefaults select this pod and were not applied, because Sallyport did not answer: ' + " +
		"variables.missing.map(o, o.split('#')[0]).join(', ') + '. Create it again once Sallyport runs'"
	message = "PodDefaults select this pod and were not applied: Sallyport did not answer, or knew not all of them yet. " +
		"Create it again once Sallyport runs; kubectl sallyport explain names them"
)

// listExpression is one of the lists of an index; empty if somebody has taken it away.
func listExpression(name string) string {
	return "(variables.lists.filter(c, c.name == '" + name + "').map(c, c.?args.orValue([])) + [[]])[0]"
}

// New describes the policy. Ready is nil once the indexes are there in all namespaces
// for which the webhook is.
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
