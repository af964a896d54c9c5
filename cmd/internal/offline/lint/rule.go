// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
)

// Rule is one check.
type Rule struct {
	// ID identifies the rule in flags and annotations, for example "wedge-self".
	ID string
	// Group is the rule's heading in the reference.
	Group string
	// Severities are the possible severities of its findings, most severe first.
	Severities []Severity
	// What is checked, why it matters, and how to fix a finding.
	What, Why, Fix string
	// Source is the origin of the rule.
	Source string

	check func(*checker)
}

// Sources of rules.
const (
	fromAPI  = "API validation"
	fromGP   = "Kubernetes: Admission Webhook Good Practices"
	fromBoth = fromAPI + "; " + fromGP
)

// Groups of rules.
const (
	groupObjects  = "Every object"
	groupIdentity = "Webhook entries: identity and contract"
	groupReach    = "Webhook entries: reaching the server"
	groupTime     = "Webhook entries: time and failure"
	groupWedge    = "Webhook entries: wedging the cluster"
	groupMatching = "Webhook entries: rules and matching"
	groupDesign   = "Webhook entries: design"
	groupStatic   = "Static manifests"
	groupCRD      = "CRD conversion"
	groupWorkload = "Workload"

	groupPolicies    = "Policies in the API server"
	groupPodDefaults = "PodDefaults"
)

// Rules returns all rules in catalogue order.
func Rules() []Rule {
	return slices.Concat([]Rule{
		unknownField(), metadata(),
		nameFQDN(), sideEffects(), reviewVersions(), invalid(),
		clientConfig(), serviceExists(), caBundle(),
		timeout(), sumTimeout(), failPolicyMutating(), failPolicyUnset(),
		wedgeWildcard(), wedgeSelf(), wedgeSystem(), wedgeNode(), wedgeConfig(), virtualResources(), leases(), crdAdmission(), loop(), olm(),
		unknownResource(), wildcards(), matchPolicy(), scope(), neverCalled(), subresourceStar(), deleteOp(), connect(), emptySelectorObj(), matchConditions(), foreignTerms(), reinvocation(), order(), overlap(),
		consolidate(),
		static(),
		crdReviewVersions(), crdStorageVersion(), crdStoredVersions(), crdClientConfig(), crdCABundle(), crdAvailability(), crdPreserveUnknown(),
		crdWebhookVersions(),
		workloadReplicas(), workloadPDB(), workloadProbes(), workloadDrain(), workloadSelector(),
		workloadNodeGate(), workloadNetworkPolicy(), workloadPort(),
		workloadRBACConfig(), workloadRBACInjector(),
		podDefaultRefused(),
	}, policyRules())
}

// FindRule returns the rule with an ID.
func FindRule(id string) (Rule, bool) {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

// Explain describes a rule, for a terminal.
func (r Rule) Explain() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s (%s)\n\n", r.ID, r.levels())
	fmt.Fprintf(&out, "Checks: %s\n\nWhy:    %s\n\nFix:    %s\n\nSource: %s\n", r.What, r.Why, r.Fix, r.Source)
	return out.String()
}

// levels returns the severities: "error, warning".
func (r Rule) levels() string {
	names := make([]string, len(r.Severities))
	for i, s := range r.Severities {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// Severity is the severity of a finding.
type Severity string

const (
	// Error means that the API server refuses the object, or that it breaks or can wedge a cluster.
	Error Severity = "error"
	// Warning is a known cause of incidents.
	Warning Severity = "warning"
	// Info is a hint, or a fact to be aware of.
	Info Severity = "info"
)

// Severities returns all severities, most severe first.
func Severities() []Severity { return []Severity{Error, Warning, Info} }

// AtLeast reports whether s is at least as severe as other.
func (s Severity) AtLeast(other Severity) bool {
	return slices.Index(Severities(), s) <= slices.Index(Severities(), other)
}
