// SPDX-License-Identifier: Apache-2.0

package matcher

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Conditions compiles match conditions, each of them once: that takes a hundred times as
// long as evaluating it. The zero value is ready to use.
type Conditions struct {
	mu       sync.Mutex
	compiled map[compiledKey]cel.CompilationResult
}

// compiler is the API server's. It is stateless, and creating it takes tens of
// milliseconds, so one is shared.
var compiler = sync.OnceValue(func() cel.Compiler {
	return cel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

type compiledKey struct {
	expression string
	params     bool
}

func (c *Conditions) compile(m admissionregistrationv1.MatchCondition, params bool) cel.CompilationResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compiled == nil {
		c.compiled = map[compiledKey]cel.CompilationResult{}
	}
	key := compiledKey{m.Expression, params}
	result, ok := c.compiled[key]
	if !ok {
		accessor := matchconditions.MatchCondition(m)
		options := cel.OptionalVariableDeclarations{HasAuthorizer: true, HasParams: params}
		result = compiler().CompileCELExpression(&accessor, options, environment.StoredExpressions)
		c.compiled[key] = result
	}
	return result
}

// Problem returns why a condition of a webhook does not compile, or "".
func (c *Conditions) Problem(m admissionregistrationv1.MatchCondition) string {
	if result := c.compile(m, false); result.Error != nil {
		line := firstLine(strings.TrimPrefix(result.Error.Detail, "compilation failed: "))
		return strings.TrimPrefix(line, "ERROR: <input>:")
	}
	return ""
}

// errRights means that the result depends on unknown data.
var errRights = errors.New("it depends on rights that are not looked at here")

// evaluate evaluates one condition for a request. The error says that the result is unknown, or that the evaluation failed.
func (c *Conditions) evaluate(ctx context.Context, m admissionregistrationv1.MatchCondition, r Request, params bool) (matches bool, err error) {
	result := c.compile(m, params)
	if result.Error != nil {
		return false, errors.New(result.Error.Detail)
	}
	if strings.Contains(m.Expression, "authorizer") {
		return false, errRights
	}
	return r.Evaluate(ctx, cel.NewCondition([]cel.CompilationResult{result}), celconfig.RuntimeCELCostBudgetMatchConditions)
}

// Evaluate evaluates one compiled condition for the request, whose user has no rights, and without parameters.
func (r Request) Evaluate(ctx context.Context, compiled cel.ConditionEvaluator, budget int64) (bool, error) {
	attributes := r.attributes()
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: r.Kind}
	if object := attributes.GetObject(); object != nil {
		versioned.VersionedObject = admission.NewLazyObject(object)
	}
	if old := attributes.GetOldObject(); old != nil {
		versioned.VersionedOldObject = admission.NewLazyObject(old)
	}
	request := cel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(r.Resource), metav1.GroupVersionKind(r.Kind))
	evaluations, _, err := compiled.ForInput(ctx, versioned, request, cel.OptionalVariableBindings{}, nil, budget)
	if err == nil && len(evaluations) == 1 {
		err = evaluations[0].Error
	}
	if err != nil {
		return false, err
	}
	matches, _ := evaluations[0].EvalResult.Value().(bool) // a compiled condition is boolean
	return matches, nil
}

// All evaluates all conditions of a webhook like the API server: one false condition decides,
// whatever happens to the others. The name is that of the deciding condition.
func (c *Conditions) All(ctx context.Context, list []admissionregistrationv1.MatchCondition, r Request) (matches bool, name string, err error) {
	matches = true
	for _, m := range list {
		switch ok, problem := c.evaluate(ctx, m, r, false); {
		case problem != nil && err == nil:
			matches, name, err = false, m.Name, problem
		case problem == nil && !ok:
			return false, m.Name, nil
		}
	}
	return matches, name, err
}

// Conditions tests match conditions for a request that is sent as a resource.
func (r Request) Conditions(ctx context.Context, c *Conditions, list []admissionregistrationv1.MatchCondition, failsClosed, params bool, sent schema.GroupVersionResource) []Step {
	r.Resource, r.Kind = sent, sent.GroupVersion().WithKind(r.Kind.Kind)
	var out []Step
	for _, m := range list {
		if about := r.unknown(m.Expression, params); about != "" {
			out = append(out, Step{Maybe, fmt.Sprintf("condition %s depends on %s", m.Name, about)})
			continue
		}
		switch matches, err := c.evaluate(ctx, m, r, params); {
		case errors.Is(err, errRights):
			out = append(out, Step{Maybe, fmt.Sprintf("condition %s: %s", m.Name, err)})
		case err != nil && failsClosed:
			out = append(out, Step{Refused, fmt.Sprintf("condition %s cannot be evaluated: %s", m.Name, firstLine(err.Error()))})
		case err != nil:
			out = append(out, Step{Out, fmt.Sprintf("condition %s cannot be evaluated, and failures are ignored: %s", m.Name, firstLine(err.Error()))})
		case matches:
			out = append(out, Step{In, fmt.Sprintf("condition %s is true", m.Name)})
		default:
			out = append(out, Step{Out, fmt.Sprintf("condition %s is false", m.Name)})
		}
	}
	return out
}

var readsObject = regexp.MustCompile(`\bobject\b`)

// ReadsObject reports whether an expression reads object, and not only oldObject.
func ReadsObject(expression string) bool {
	return readsObject.MatchString(strings.ReplaceAll(expression, "oldObject", ""))
}

// unknown names unknown data that an expression reads, or returns "".
func (r Request) unknown(expression string, params bool) string {
	switch {
	case params && strings.Contains(expression, "params"):
		return "the parameters of the policy"
	case ReadsObject(expression) && r.unknownObject():
		return "the object, which is not known"
	case strings.Contains(expression, "oldObject") && r.unknownOld():
		return "the old object, which is not known"
	case strings.Contains(expression, "request.userInfo") && r.User == "":
		return "who asks, which is not known"
	}
	return ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
