// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"errors"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// conditions evaluates match conditions with the API server's packages.
type conditions struct {
	*expressions
	reached map[reachKey]bool
}

// expressions compiles match conditions, each of them once: that takes a hundred times as
// long as evaluating it.
type expressions struct {
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

func (c *expressions) compile(m admissionregistrationv1.MatchCondition, params bool) cel.CompilationResult {
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

// compileError returns why an expression does not compile, or "".
func (c *conditions) compileError(m admissionregistrationv1.MatchCondition) string {
	if result := c.compile(m, false); result.Error != nil {
		line := firstLine(strings.TrimPrefix(result.Error.Detail, "compilation failed: "))
		return strings.TrimPrefix(line, "ERROR: <input>:")
	}
	return ""
}

// verdict is the result of a condition for a request.
type verdict struct {
	matches bool
	err     error // unknown, or the evaluation failed
}

// errUnknown means that the result depends on unknown data.
var errUnknown = errors.New("it depends on rights that are not looked at here")

// evaluate evaluates one condition for a request.
func (c *conditions) evaluate(ctx context.Context, m admissionregistrationv1.MatchCondition, r Request, params bool) verdict {
	result := c.compile(m, params)
	if result.Error != nil {
		return verdict{err: errors.New(result.Error.Detail)}
	}
	if strings.Contains(m.Expression, "authorizer") {
		return verdict{err: errUnknown}
	}
	attributes := r.attributes()
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: r.Kind}
	if object := attributes.GetObject(); object != nil {
		versioned.VersionedObject = admission.NewLazyObject(object)
	}
	if old := attributes.GetOldObject(); old != nil {
		versioned.VersionedOldObject = admission.NewLazyObject(old)
	}
	request := cel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(r.Resource), metav1.GroupVersionKind(r.Kind))
	evaluations, _, err := cel.NewCondition([]cel.CompilationResult{result}).ForInput(ctx, versioned, request,
		cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudgetMatchConditions)
	switch {
	case err != nil:
		return verdict{err: err}
	case evaluations[0].Error != nil:
		return verdict{err: evaluations[0].Error}
	}
	matches, _ := evaluations[0].EvalResult.Value().(bool) // a compiled condition is boolean
	return verdict{matches: matches}
}

// all evaluates all conditions like the API server: one false condition decides,
// whatever happens to the others. The name is that of the deciding condition.
func (c *conditions) all(ctx context.Context, list []admissionregistrationv1.MatchCondition, r Request, params bool) (verdict, string) {
	out, name := verdict{matches: true}, ""
	for _, m := range list {
		v := c.evaluate(ctx, m, r, params)
		if v.err != nil {
			if out.err == nil {
				out, name = verdict{err: v.err}, m.Name
			}
		} else if !v.matches {
			return v, m.Name
		}
	}
	return out, name
}

// Request is a request to the API server.
type Request struct {
	Operation admissionregistrationv1.OperationType
	// Resource and Subresource belong to the request, Kind to Object.
	Resource    schema.GroupVersionResource
	Subresource string
	Kind        schema.GroupVersionKind
	// Namespace is empty for cluster-scoped objects. For a Namespace it is its name.
	Namespace, Name string
	// Object and OldObject depend on the operation; nil if absent or unknown.
	Object, OldObject map[string]any
	// User and Groups identify the user.
	User   string
	Groups []string
	// NamespaceLabels are the labels of the namespace; nil if unknown.
	NamespaceLabels map[string]string
	// Equivalents are the same resource in other versions or groups.
	Equivalents []schema.GroupVersionResource
	// KubernetesMinor is the minor version N of Kubernetes 1.N; 0 means unknown and
	// counts as the newest.
	KubernetesMinor int
}

// attributes converts the request to the API server's type.
func (r Request) attributes() admission.Attributes {
	asObject := func(value map[string]any) runtime.Object {
		if value == nil {
			return nil
		}
		return &unstructured.Unstructured{Object: value}
	}
	return admission.NewAttributesRecord(asObject(r.Object), asObject(r.OldObject), r.Kind, r.Namespace, r.Name, r.Resource, r.Subresource,
		admission.Operation(r.Operation), nil, true, &user.DefaultInfo{Name: r.User, Groups: r.Groups})
}

// bare returns a request to write an object of which only name and namespace are known.
func bare(group, version, resource, kind, namespace string) Request {
	object := map[string]any{"apiVersion": schema.GroupVersion{Group: group, Version: version}.String(), "kind": kind, "metadata": map[string]any{"name": "x"}}
	if namespace != "" {
		object["metadata"] = map[string]any{"name": "x", "namespace": namespace}
	}
	return Request{
		Operation: admissionregistrationv1.Create, Resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
		Kind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Namespace: namespace, Name: "x", Object: object, User: "system:admin",
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
