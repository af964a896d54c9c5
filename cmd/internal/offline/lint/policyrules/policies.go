// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"fmt"
	"slices"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// Object identifies an object. Ref is the caller's own.
type Object struct {
	Kind, Namespace, Name string
	Labels                map[string]string
	V1                    bool // in the API of admission, not of v1beta1
	Ref                   any
}

// Resource is a version of a resource that the API server has.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// Webhook is an entry of a webhook configuration.
type Webhook struct {
	// Title is for messages.
	Title    string
	Mutating bool
	// Reinvoked is set if other changes call it again.
	Reinvoked bool
	Rules     []admissionregistrationv1.RuleWithOperations
}

// Set is everything that the rules know.
type Set struct {
	Policies []*Policy
	Bindings []*Binding
	Webhooks []Webhook
	// Resources are known; they are all there are in Groups, or in all groups if Complete.
	Resources []Resource
	Groups    map[string]bool
	Complete  bool
	// Objects are the objects that were read, by kind; those of kinds in Listed are all there are.
	Objects map[schema.GroupVersionKind][]*Object
	Listed  func(schema.GroupVersionKind) bool
	// AllBindings is set if there can be no other bindings, AllPolicies no other policies.
	AllBindings, AllPolicies bool
	// ExcludesNamespace reports whether a selector excludes a namespace.
	ExcludesNamespace func(policy *Policy, binding *Binding, namespace string) bool
	// Writers returns who, apart from administrators, may change objects of a resource; only
	// subjects that stand for all users are asked for.
	Writers func(group, resource string) []string
	// Schema returns the schema of a kind from its CustomResourceDefinition, as JSON; nil if none was read.
	Schema func(schema.GroupVersionKind) []byte
	// Release is the cluster's, if it is known.
	Release release.Version

	checkers caches
}

type caches struct {
	types func() *typeChecker
}

// Index connects bindings and policies. It is called once, before rules are run.
func (s *Set) Index() {
	type name struct {
		mutating bool
		name     string
	}
	byName := map[name][]*Binding{}
	for _, b := range s.Bindings {
		key := name{b.Mutating, b.PolicyName}
		byName[key] = append(byName[key], b)
	}
	env := newEnvironment(s.Release)
	for _, p := range s.Policies {
		for _, b := range byName[name{p.Mutating, p.Name}] {
			p.Bindings, b.Policy = append(p.Bindings, b), p
		}
		p.environment = env
	}
	s.checkers.types = sync.OnceValue(func() *typeChecker { return newTypeChecker(s) })
}

// Policy is a policy of either kind; one of Validating and Mutation is set.
type Policy struct {
	*Object
	Mutating   bool
	Validating *admissionregistrationv1.ValidatingAdmissionPolicySpec
	Mutation   *admissionregistrationv1.MutatingAdmissionPolicySpec
	Bindings   []*Binding

	environment *environmentSet
	compiled    *compiled
	expressions []expression
}

// Binding is a binding of either kind.
type Binding struct {
	*Object
	Mutating   bool
	PolicyName string
	Match      *admissionregistrationv1.MatchResources
	ParamRef   *admissionregistrationv1.ParamRef
	Actions    []admissionregistrationv1.ValidationAction
	Policy     *Policy
}

func (p *Policy) constraints() *admissionregistrationv1.MatchResources {
	if p.Mutating {
		return p.Mutation.MatchConstraints
	}
	return p.Validating.MatchConstraints
}

func (p *Policy) conditions() []admissionregistrationv1.MatchCondition {
	if p.Mutating {
		return p.Mutation.MatchConditions
	}
	return p.Validating.MatchConditions
}

func (p *Policy) variables() []admissionregistrationv1.Variable {
	if p.Mutating {
		return p.Mutation.Variables
	}
	return p.Validating.Variables
}

func (p *Policy) paramKind() *admissionregistrationv1.ParamKind {
	if p.Mutating {
		return p.Mutation.ParamKind
	}
	return p.Validating.ParamKind
}

func (p *Policy) paramGVK() schema.GroupVersionKind {
	if p.paramKind() == nil {
		return schema.GroupVersionKind{}
	}
	return schema.FromAPIVersionAndKind(p.paramKind().APIVersion, p.paramKind().Kind)
}

func (p *Policy) failurePolicy() *admissionregistrationv1.FailurePolicyType {
	if p.Mutating {
		return p.Mutation.FailurePolicy
	}
	return p.Validating.FailurePolicy
}

// failsClosed applies the API's default.
func (p *Policy) failsClosed() bool {
	return p.failurePolicy() == nil || *p.failurePolicy() == admissionregistrationv1.Fail
}

func (p *Policy) reinvoked() bool {
	return p.Mutating && p.Mutation.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
}

// rules returns the rules of the policy's constraints.
func (p *Policy) rules() []admissionregistrationv1.NamedRuleWithOperations {
	if p.constraints() == nil {
		return nil
	}
	return p.constraints().ResourceRules
}

// enforcing returns the bindings that can refuse a request: those of a mutating policy, which
// fails, and those of a validating policy that deny.
func (p *Policy) enforcing() []*Binding {
	return slices.DeleteFunc(slices.Clone(p.Bindings), func(b *Binding) bool { return !b.denies() })
}

func (b *Binding) denies() bool {
	return b.Mutating || slices.Contains(b.Actions, admissionregistrationv1.Deny)
}

// narrowed reports whether anything besides rules narrows a policy where a binding applies it.
func (p *Policy) narrowed(b *Binding) bool {
	for _, m := range []*admissionregistrationv1.MatchResources{p.constraints(), b.Match} {
		if m != nil && (len(selectors.Terms(m.NamespaceSelector)) > 0 || len(selectors.Terms(m.ObjectSelector)) > 0 || len(m.ExcludeResourceRules) > 0) {
			return true
		}
	}
	return len(p.conditions()) > 0
}

// optsIn reports whether only objects with a label are matched.
func (p *Policy) optsIn(b *Binding) bool {
	for _, m := range []*admissionregistrationv1.MatchResources{p.constraints(), b.Match} {
		if m != nil && selectors.OptsIn(m.ObjectSelector) {
			return true
		}
	}
	return false
}

// matches reports whether a policy, where a binding applies it, is about any object of a resource.
func (p *Policy) matches(b *Binding, group, resource string, operations ...admissionregistrationv1.OperationType) bool {
	in := func(m *admissionregistrationv1.MatchResources, operation admissionregistrationv1.OperationType) bool {
		some := func(list []admissionregistrationv1.NamedRuleWithOperations) bool {
			return slices.ContainsFunc(list, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
				return len(r.ResourceNames) == 0 && matcher.Covers(r.RuleWithOperations, group, resource, operation)
			})
		}
		return m == nil || !some(m.ExcludeResourceRules) && (len(m.ResourceRules) == 0 || some(m.ResourceRules))
	}
	if len(operations) == 0 {
		operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	}
	return slices.ContainsFunc(operations, func(operation admissionregistrationv1.OperationType) bool {
		return in(p.constraints(), operation) && (b == nil || in(b.Match, operation))
	})
}

// target is a resource of a rule whose kind is known.
type target struct {
	Resource
	rule int
}

// targets returns the known resources that rules match by name, without subresources.
func (c *checker) targets(p *Policy) []target {
	var out []target
	for i, r := range p.rules() {
		for _, known := range c.Resources {
			if slices.Contains(r.APIGroups, known.Group) && slices.Contains(r.Resources, known.GroupVersionResource.Resource) && matcher.CoversVersion(r.RuleWithOperations, known.GroupVersionResource) {
				out = append(out, target{known, i})
			}
		}
	}
	return out
}

func resourceName(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

func rulePointer(i int) string { return fmt.Sprintf("/spec/matchConstraints/resourceRules/%d", i) }
