// SPDX-License-Identifier: Apache-2.0

// Package expressions compiles the CEL expressions of policies and match conditions.
package expressions

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
)

// A Compilation compiles the expressions of a policy, and collects what does not compile.
type Compilation struct {
	*cel.CompositedCompiler
	Options cel.OptionalVariableDeclarations
	// Mode is that of all expressions.
	Mode      environment.Type
	variables map[string]string
	// Errs has what does not compile.
	Errs []error
}

// New compiles the variables of a policy, in their order. Params says whether it has parameters. Stored expressions can use
// all libraries, and new ones those that the release lets them use.
func New(variables []admissionregistrationv1.Variable, params bool, mode environment.Type, of release.Version) (*Compilation, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(of.Expressions()))
	if err != nil {
		return nil, err
	}
	c := &Compilation{CompositedCompiler: compiler, Options: cel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}, variables: map[string]string{}, Mode: mode}
	for _, v := range variables {
		c.variables[v.Name] = v.Expression
		if result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, c.Options, mode); result.Error != nil {
			c.Errs = append(c.Errs, fmt.Errorf("variable %s: %w", v.Name, result.Error))
		}
	}
	return c, nil
}

// Reads returns what expressions read.
func (c *Compilation) Reads(expressions ...string) []reads.Read {
	var out []reads.Read
	for _, expression := range expressions {
		out = append(out, reads.Of(expression, c.variables)...)
	}
	return out
}

// Conditions compiles conditions. One that is nil is left out.
func (c *Compilation) Conditions(expressions []cel.ExpressionAccessor, options cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
	for _, expression := range expressions {
		if expression == nil {
			continue
		}
		if result := c.CompileCELExpression(expression, options, c.Mode); result.Error != nil {
			c.Errs = append(c.Errs, fmt.Errorf("%s: %w", expression.GetExpression(), result.Error))
		}
	}
	return c.CompileCondition(expressions, options, c.Mode)
}

// Matcher compiles match conditions of a name; nil for none.
func (c *Compilation) Matcher(list []admissionregistrationv1.MatchCondition, fail *admissionregistrationv1.FailurePolicyType, name string) matchconditions.Matcher {
	if len(list) == 0 {
		return nil
	}
	expressions := make([]cel.ExpressionAccessor, len(list))
	for i := range list {
		expressions[i] = (*matchconditions.MatchCondition)(&list[i])
	}
	return matchconditions.NewMatcher(c.Conditions(expressions, c.Options), fail, "policy", "validate", name)
}

// ReadsOf returns what match conditions read.
func (c *Compilation) ReadsOf(list []admissionregistrationv1.MatchCondition) []reads.Read {
	var out []reads.Read
	for _, condition := range list {
		out = append(out, c.Reads(condition.Expression)...)
	}
	return out
}
