// SPDX-License-Identifier: Apache-2.0

// Package policyrules has the rules of lint about ValidatingAdmissionPolicies and
// MutatingAdmissionPolicies, which the API server evaluates itself. They use the API
// server's own compiler, type checker and evaluator. The package knows nothing of files or
// clusters: package lint hands it a [Set].
package policyrules

// Level is the severity of a finding.
type Level string

// The levels are those of package lint.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Info    Level = "info"
)

// Rule is one check of policies.
type Rule struct {
	ID                     string
	Levels                 []Level
	What, Why, Fix, Source string

	check func(*checker)
}

// Sources of rules.
const (
	validation = "API validation"
	docsVAP    = "Kubernetes: Validating Admission Policy"
	docsMAP    = "Kubernetes: Mutating Admission Policy"
	incidents  = "incidents"
)

// Rules returns all rules in catalogue order.
func Rules() []Rule {
	return []Rule{
		invalid(), compile(), typeCheck(),
		unbound(), bindingTarget(), neverMatches(), auditOnly(), failOpen(),
		wedgeWildcard(), wedgeNode(), wedgeSystem(), wedgeDefinitions(),
		paramKind(), paramScope(), paramMissing(), paramUnused(), paramWriters(),
		unknownResource(), ineffective(), exact(), clusterScoped(), optOut(),
		unguarded(), deletion(), message(), leak(), cost(), authorizer(),
		releaseDefect(), idempotent(), atomicList(), immutable(), sameField(), deleteMutation(), beforeWebhooks(), repeatsWebhook(),
	}
}

// A Finding is about the value at a JSON pointer in an object. Fix is that of the rule if
// it is empty.
type Finding struct {
	Object                *Object
	Level                 Level
	Pointer, Message, Fix string
}

// Check runs the rule. It calls found for each finding, and skipped for each object that the
// rule could not judge, with the reason.
func (r Rule) Check(set *Set, found func(Finding), skipped func(object *Object, reason string)) {
	r.check(&checker{Set: set, found: found, skipped: skipped})
}

type checker struct {
	*Set
	found   func(Finding)
	skipped func(*Object, string)
}

func (c *checker) find(o *Object, level Level, pointer, message string) {
	c.found(Finding{Object: o, Level: level, Pointer: pointer, Message: message})
}
