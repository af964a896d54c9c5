// SPDX-License-Identifier: Apache-2.0

// Package conditions evaluates the match conditions of a configuration with the API server's own packages.
package conditions

import (
	"context"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// compiler is the API server's, which takes tens of milliseconds to create.
var compiler = sync.OnceValue(func() cel.Compiler {
	return cel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

func compile(condition admissionregistrationv1.MatchCondition) cel.CompilationResult {
	accessor := matchconditions.MatchCondition(condition)
	return compiler().CompileCELExpression(&accessor, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
}

// Validate reports the expressions of a list that the API server refuses: those that do not compile, or have no truth
// value. Names and numbers are checked with the definitions.
func Validate(list []admissionregistrationv1.MatchCondition, path *field.Path) (errs field.ErrorList) {
	for i, condition := range list {
		if result := compile(condition); result.Error != nil {
			problem, _, _ := strings.Cut(result.Error.Detail, "\n")
			errs = append(errs, field.Invalid(path.Index(i).Child("expression"), condition.Expression, problem))
		}
	}
	return errs
}

// A Set is a list of conditions for creations of pods.
type Set struct {
	list     []admissionregistrationv1.MatchCondition
	compiled []cel.CompilationResult
}

// A Latest keeps the set of the conditions that were used last. The zero value is ready to use.
type Latest struct {
	mu  sync.Mutex
	set *Set
}

// Of returns the set of a list, the same one as before if the list has not changed; nil if the list is empty.
func (l *Latest) Of(list []admissionregistrationv1.MatchCondition) *Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(list) == 0 {
		l.set = nil
	} else if l.set == nil || !slices.Equal(l.set.list, list) {
		l.set = newSet(list)
	}
	return l.set
}

// newSet leaves out conditions that ask for rights, because who created a pod is not known.
func newSet(list []admissionregistrationv1.MatchCondition) *Set {
	out := &Set{list: slices.Clone(list)}
	for _, condition := range list {
		if result := compile(condition); result.Error == nil && !strings.Contains(condition.Expression, "authorizer") {
			out.compiled = append(out.compiled, result)
		}
	}
	return out
}

var pods, podKind = corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod")

// Excludes reports whether a condition is false for a pod, as it is stored. A condition that fails excludes nothing.
func (s *Set) Excludes(pod *corev1.Pod) bool {
	attributes := admission.NewAttributesRecord(pod, nil, podKind, pod.Namespace, pod.Name, pods, "", admission.Create, nil, true, &user.DefaultInfo{})
	request := cel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(pods), metav1.GroupVersionKind(podKind))
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: podKind, VersionedObject: admission.NewLazyObject(pod)}
	evaluations, _, err := cel.NewCondition(s.compiled).ForInput(context.Background(), versioned, request, cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudgetMatchConditions)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(evaluations, func(e cel.EvaluationResult) bool {
		if e.Error != nil {
			return false
		}
		matches, isBool := e.EvalResult.Value().(bool)
		return isBool && !matches
	})
}
