// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// conditionCompiler is the API server's, which takes tens of milliseconds to create.
var conditionCompiler = sync.OnceValue(func() cel.Compiler {
	return cel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// validateConditions reports the expressions of an entry that the API server refuses: those
// that do not compile, or have no truth value. Names and numbers are checked with the definitions.
func validateConditions(conditions []admissionregistrationv1.MatchCondition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, condition := range conditions {
		accessor := matchconditions.MatchCondition(condition)
		result := conditionCompiler().CompileCELExpression(&accessor, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
		if result.Error != nil {
			problem, _, _ := strings.Cut(result.Error.Detail, "\n")
			errs = append(errs, field.Invalid(path.Index(i).Child("expression"), condition.Expression, problem))
		}
	}
	return errs
}
