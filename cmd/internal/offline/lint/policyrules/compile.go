// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/common/ast"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/policyfields"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
)

// expression is one of a policy's expressions.
type expression struct {
	pointer, text string
	kind          kindOfExpression
	index         int
	tree          ast.Expr
}

type kindOfExpression int

const (
	condition kindOfExpression = iota
	variable
	validates
	messages
	annotates
	patches
	applies
)

// all returns the expressions of a policy in the order in which they are compiled.
func (p *Policy) all() []expression {
	if p.expressions != nil {
		return p.expressions
	}
	add := func(kind kindOfExpression, i int, text, pointer string) {
		p.expressions = append(p.expressions, expression{pointer: pointer, text: text, kind: kind, index: i, tree: reads.Parse(text)})
	}
	for i, v := range p.variables() {
		add(variable, i, v.Expression, fmt.Sprintf("/spec/variables/%d/expression", i))
	}
	for i, m := range p.conditions() {
		add(condition, i, m.Expression, fmt.Sprintf("/spec/matchConditions/%d/expression", i))
	}
	if p.Mutating {
		for i, m := range p.Mutation.Mutations {
			if m.JSONPatch != nil {
				add(patches, i, m.JSONPatch.Expression, fmt.Sprintf("/spec/mutations/%d/jsonPatch/expression", i))
			}
			if m.ApplyConfiguration != nil {
				add(applies, i, m.ApplyConfiguration.Expression, fmt.Sprintf("/spec/mutations/%d/applyConfiguration/expression", i))
			}
		}
		return p.expressions
	}
	for i, v := range p.Validating.Validations {
		add(validates, i, v.Expression, fmt.Sprintf("/spec/validations/%d/expression", i))
		if v.MessageExpression != "" {
			add(messages, i, v.MessageExpression, fmt.Sprintf("/spec/validations/%d/messageExpression", i))
		}
	}
	for i, a := range p.Validating.AuditAnnotations {
		add(annotates, i, a.ValueExpression, fmt.Sprintf("/spec/auditAnnotations/%d/valueExpression", i))
	}
	return p.expressions
}

// trees returns the syntax trees of the policy's expressions of some kinds.
func (p *Policy) of(kinds ...kindOfExpression) []expression {
	var out []expression
	for _, e := range p.all() {
		for _, kind := range kinds {
			if e.kind == kind {
				out = append(out, e)
			}
		}
	}
	return out
}

// compiled is the result of compiling a policy.
type compiled struct {
	options cel.OptionalVariableDeclarations
	errs    map[string]string // by pointer
}

// environmentSet is the API server's environment of a release, which takes tens of milliseconds to make.
type environmentSet struct {
	base *environment.EnvSet
	// compiler compiles for all policies: it takes ten milliseconds to make. It has the variables of declared.
	compiler *cel.CompositedCompiler
	err      error
	declared *Policy
}

// newEnvironment returns the environment in which a release compiles new expressions. One set of policies has it.
func newEnvironment(r release.Version) *environmentSet {
	out := &environmentSet{base: environment.MustBaseEnvSet(r.Expressions())}
	out.compiler, out.err = cel.NewCompositedCompiler(out.base)
	return out
}

// declare makes the variables of the policy, and no others that it reads, those of the compiler.
func (p *Policy) declare() (*cel.CompositedCompiler, map[string]string) {
	env := p.environment
	if env.declared == p {
		return env.compiler, nil
	}
	if !p.readsOwnVariables() { // those of other policies must not be there
		env.compiler, env.err = cel.NewCompositedCompiler(env.base)
		if env.err != nil {
			return nil, map[string]string{"/spec": env.err.Error()}
		}
	}
	env.declared = p
	errs := map[string]string{}
	for _, e := range p.of(variable) {
		v := p.variables()[e.index]
		if result := env.compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, p.compiled.options, environment.NewExpressions); result.Error != nil {
			errs[e.pointer] = compileError(result.Error.Detail)
		}
	}
	return env.compiler, errs
}

var variableNames = regexp.MustCompile(`\bvariables\b(?:\.\??(\w+))?`)

// readsOwnVariables reports whether each variable that the policy reads is declared before.
func (p *Policy) readsOwnVariables() bool {
	declared := map[string]bool{}
	for _, e := range p.all() { // variables come first
		for _, m := range variableNames.FindAllStringSubmatch(e.text, -1) {
			if !declared[m[1]] {
				return false
			}
		}
		if e.kind == variable {
			declared[p.variables()[e.index].Name] = true
		}
	}
	return true
}

// programs compiles the policy as the API server does when it stores it.
func (p *Policy) programs() *compiled {
	if p.compiled != nil {
		return p.compiled
	}
	p.compiled = &compiled{errs: map[string]string{}, options: cel.OptionalVariableDeclarations{HasParams: p.paramKind() != nil, HasAuthorizer: true}}
	compiler, errs := p.declare()
	if errs != nil {
		p.compiled.errs = errs
	}
	if compiler == nil {
		return p.compiled
	}
	for _, e := range p.all() {
		if e.kind == variable {
			continue
		}
		options := p.compiled.options
		options.HasPatchTypes = e.kind == patches || e.kind == applies
		options.HasAuthorizer = e.kind != messages
		if result := compiler.CompileCELExpression(p.accessor(e), options, environment.NewExpressions); result.Error != nil {
			p.compiled.errs[e.pointer] = compileError(result.Error.Detail)
		}
	}
	return p.compiled
}

func (p *Policy) accessor(e expression) cel.ExpressionAccessor {
	switch e.kind {
	case condition:
		m := matchconditions.MatchCondition(p.conditions()[e.index])
		return &m
	case validates:
		return &validating.ValidationCondition{Expression: e.text}
	case messages:
		return &validating.MessageExpressionCondition{MessageExpression: e.text}
	case annotates:
		return &validating.AuditAnnotationCondition{Key: p.Validating.AuditAnnotations[e.index].Key, ValueExpression: e.text}
	case patches:
		return &patch.JSONPatchCondition{Expression: e.text}
	case applies:
		return &patch.ApplyConfigurationCondition{Expression: e.text}
	}
	return nil
}

// compileError is one line: the position in the expression, and the cause.
func compileError(detail string) string {
	detail = strings.TrimPrefix(detail, "compilation failed: ")
	line, _, _ := strings.Cut(strings.TrimSpace(detail), "\n")
	if at, ok := strings.CutPrefix(line, "ERROR: <input>:"); ok {
		parts := strings.SplitN(at, ":", 3)
		if len(parts) == 3 {
			return fmt.Sprintf("line %s, column %s:%s", parts[0], parts[1], parts[2])
		}
	}
	return line
}

// field names the field of an expression for messages: "validations[0].expression".
func (e expression) field() string {
	parts := strings.Split(strings.TrimPrefix(e.pointer, "/spec/"), "/")
	if len(parts) < 2 {
		return parts[0]
	}
	return parts[0] + "[" + parts[1] + "]." + strings.Join(parts[2:], ".")
}

func compile() Rule {
	return Rule{
		ID: "policy-compile", Levels: []Level{Error}, Source: validation,
		What: "Expressions of policies and match conditions compile, with the types that they have to return, in the order in which variables are declared.",
		Why:  "The API server refuses the policy. One that is stored, from before an upgrade or in a static manifest, fails for every request that it matches.",
		Fix:  "Correct the expression: it is CEL over object, oldObject, request, params, namespaceObject, variables and authorizer.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				errs := p.programs().errs
				for _, e := range p.all() {
					if cause := errs[e.pointer]; cause != "" {
						c.find(p.Object, Error, e.pointer, e.field()+" does not compile: "+cause)
					}
				}
			}
		},
	}
}

func invalid() Rule {
	return Rule{
		ID: "policy-invalid", Levels: []Level{Error}, Source: validation,
		What: "Fields of policies and bindings are as the API server requires: rules, selectors, names of variables, conditions and annotations, reasons, messages, and values that are one of several. A paramRef has a name or a selector, and a parameterNotFoundAction.",
		Why:  "The API server refuses the object.",
		Fix:  "Correct the field.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if p.Mutating {
					c.invalid(p.Object, policyfields.MutatingPolicy(p.Mutation))
				} else {
					c.invalid(p.Object, policyfields.ValidatingPolicy(p.Name, p.Validating))
				}
			}
			for _, b := range c.Bindings {
				if b.Mutating {
					c.invalid(b.Object, policyfields.MutatingBinding(&admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: b.PolicyName, MatchResources: b.Match, ParamRef: b.ParamRef}))
				} else {
					c.invalid(b.Object, policyfields.ValidatingBinding(&admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: b.PolicyName, MatchResources: b.Match, ParamRef: b.ParamRef, ValidationActions: b.Actions}))
				}
			}
		},
	}
}

func (c *checker) invalid(o *Object, errs field.ErrorList) {
	for _, err := range errs {
		if err.BadValue == admissionregistrationv1.Delete {
			continue // that of another rule
		}
		pointer := "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(err.Field)
		c.find(o, Error, pointer, policyfields.Text(err))
	}
}
