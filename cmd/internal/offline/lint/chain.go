// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// Phase is a phase of admission. [Phases] has their order (kube-apiserver's recommended
// order of plugins).
type Phase string

// Phases of policies and webhooks.
const (
	MutatingPolicies   Phase = "mutating policies"
	MutatingWebhooks   Phase = "mutating webhooks"
	ValidatingPolicies Phase = "validating policies"
	ValidatingWebhooks Phase = "validating webhooks"
)

// Phases returns all phases in order.
func Phases() []Phase {
	return []Phase{MutatingPolicies, MutatingWebhooks, ValidatingPolicies, ValidatingWebhooks}
}

// Answer says whether a policy or webhook sees a request.
type Answer string

// Possible answers.
const (
	In  Answer = "in"
	Out Answer = "out"
	// Maybe means that it depends on unknown data.
	Maybe Answer = "maybe"
	// Refused means that the request is refused without a call: a match condition
	// cannot be evaluated, and the failure policy is Fail.
	Refused Answer = "refused"
)

// Link is a policy or webhook, and whether it sees the request.
type Link struct {
	Phase Phase `json:"phase"`
	// Name is "configuration/webhook", or "policy/binding".
	Name   string `json:"name"`
	Answer Answer `json:"answer"`
	// Why says what includes or excludes the request.
	Why string `json:"why"`
	// Sent is the version sent to the webhook, if it differs from that of the request.
	Sent          string `json:"sent,omitempty"`
	FailurePolicy string `json:"failurePolicy"`
	// TimeoutSeconds is set for webhooks.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// Reinvoked is set if it is called again after later changes.
	Reinvoked bool `json:"reinvoked,omitempty"`
	// Server is "host:port" of a webhook.
	Server string `json:"server,omitempty"`
	// Actions are the actions of a validating policy's binding.
	Actions []string `json:"actions,omitempty"`
	// Static is set for objects that kube-apiserver reads from a file.
	Static bool `json:"static,omitempty"`
}

// Chain returns the policies and webhooks for a request in the order in which the API
// server considers them, including those it skips. Mutating webhooks are sorted by the
// name of their configuration, then by position; those of static manifests come first.
// Each is evaluated against the original request, although earlier changes may include
// or exclude later ones.
func (in *Inventory) Chain(ctx context.Context, r Request) []Link {
	c := &chain{Inventory: in, request: r, attributes: r.attributes(), conditions: &conditions{&in.expressions, map[reachKey]bool{}}}
	var out []Link
	for _, phase := range Phases() {
		switch phase {
		case MutatingPolicies, ValidatingPolicies:
			out = append(out, c.policies(ctx, phase)...)
		case MutatingWebhooks, ValidatingWebhooks:
			out = append(out, c.webhooks(ctx, phase)...)
		}
	}
	return out
}

type chain struct {
	*Inventory
	request    Request
	attributes apiserveradmission.Attributes
	conditions *conditions
}

// step is the result of one test.
type step struct {
	answer Answer
	why    string
}

func (c *chain) webhooks(ctx context.Context, phase Phase) []Link {
	configurations := slices.DeleteFunc(slices.Clone(c.configurations), func(config *configuration) bool {
		return config.mutating != (phase == MutatingWebhooks)
	})
	slices.SortStableFunc(configurations, func(a, b *configuration) int { return staticFirst(a.Object, b.Object) })
	var out []Link
	for _, config := range configurations {
		for _, w := range config.webhooks {
			out = append(out, c.webhook(ctx, phase, w))
		}
	}
	return out
}

// staticFirst compares two objects by the order of the API server: those of static manifests first, then by name.
func staticFirst(a, b *Object) int {
	if a.static() != b.static() {
		if a.static() {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

func (c *chain) webhook(ctx context.Context, phase Phase, w *webhook) Link {
	server, _ := endpoint(w.ClientConfig)
	link := Link{
		Phase: phase, Name: w.title(), FailurePolicy: string(admissionregistrationv1.Fail), TimeoutSeconds: w.seconds(), Server: server, Static: w.config.static(),
		Reinvoked: w.config.mutating && w.ReinvocationPolicy != nil && *w.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy,
	}
	if !w.failsClosed() {
		link.FailurePolicy = string(admissionregistrationv1.Ignore)
	}
	if rules.IsExemptAdmissionConfigurationResource(c.attributes) && !w.config.static() {
		link.Answer, link.Why = Out, "webhook configurations and policies are never sent to webhooks that the API registered"
		return link
	}
	minor := c.request.KubernetesMinor
	if (minor == 0 || minor >= virtualSince) && slices.Contains(virtual[c.request.Resource.Group], c.request.Resource.Resource) {
		link.Answer, link.Why = Out, "since Kubernetes 1.37 such reviews are never sent to webhooks"
		return link
	}
	list := make([]admissionregistrationv1.NamedRuleWithOperations, len(w.Rules))
	for i, rule := range w.Rules {
		list[i].RuleWithOperations = rule
	}
	matched, rule, sent := c.rules(list, !w.exact())
	if !matched {
		link.Answer, link.Why = Out, "no rule is for it"
		return link
	}
	link.Sent = c.sentAs(sent)
	steps := []step{{In, "rule " + ruleText(rule)}, c.namespaceSelector(w.NamespaceSelector), c.objectSelector(w.ObjectSelector)}
	steps = append(steps, c.matchConditions(ctx, w.MatchConditions, w.failsClosed(), false, sent)...)
	link.Answer, link.Why = conclude(steps)
	return link
}

// conclude returns the answer of the first step that excludes the request, or of all.
func conclude(steps []step) (Answer, string) {
	for _, decisive := range []Answer{Out, Refused} {
		if i := slices.IndexFunc(steps, func(s step) bool { return s.answer == decisive }); i >= 0 {
			return decisive, steps[i].why
		}
	}
	answer, why := In, []string{}
	for _, s := range steps {
		if s.answer == Maybe {
			answer = Maybe
		}
		if s.why != "" {
			why = append(why, s.why)
		}
	}
	return answer, strings.Join(why, "; ")
}

// rules finds the rule that matches the request, and the version.
func (c *chain) rules(list []admissionregistrationv1.NamedRuleWithOperations, equivalent bool) (bool, admissionregistrationv1.RuleWithOperations, schema.GroupVersionResource) {
	var rules []admissionregistrationv1.RuleWithOperations
	for _, named := range list {
		if len(named.ResourceNames) == 0 || slices.Contains(named.ResourceNames, c.request.Name) {
			rules = append(rules, named.RuleWithOperations)
		}
	}
	var equivalents []schema.GroupVersionResource
	if equivalent {
		equivalents = c.request.Equivalents
	}
	request := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Operation(c.request.Operation), Namespace: c.request.Namespace,
		Resource: metav1.GroupVersionResource(c.request.Resource), SubResource: c.request.Subresource,
	}
	i, sent, ok := admission.MatchRules(rules, request, equivalents)
	if !ok {
		return false, admissionregistrationv1.RuleWithOperations{}, schema.GroupVersionResource{}
	}
	return true, rules[i], sent
}

func (c *chain) sentAs(sent schema.GroupVersionResource) string {
	if sent == c.request.Resource {
		return ""
	}
	return sent.GroupVersion().String()
}

func (c *chain) namespaceSelector(s *metav1.LabelSelector) step {
	if len(selectors.Terms(s)) == 0 {
		return step{In, ""}
	}
	r := c.request
	isNamespace := r.Resource.Resource == "namespaces"
	if r.Namespace == "" && !isNamespace {
		return step{In, "namespaceSelector never excludes cluster-scoped objects"}
	}
	if isNamespace && r.Subresource == "" && (r.Operation == admissionregistrationv1.Create || r.Operation == admissionregistrationv1.Update) {
		if r.Object == nil {
			return step{Maybe, "namespaceSelector depends on the labels of the object, which are not known"}
		}
		return asked(s, labelsOf(r.Object), "namespaceSelector", "the object's own labels")
	}
	set, known := c.labelsOfNamespace(r.Namespace)
	if known {
		return asked(s, set, "namespaceSelector", "namespace "+r.Namespace)
	}
	// For a namespace that was not read, only the name is known.
	unknown := false
	for _, term := range selectors.Terms(s) {
		if term.Key != corev1.LabelMetadataName {
			unknown = true
			continue
		}
		one := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{term}}
		if !selects(one, set) {
			return step{Out, "namespaceSelector leaves out namespace " + r.Namespace}
		}
	}
	if unknown {
		return step{Maybe, "namespaceSelector depends on the labels of namespace " + r.Namespace + ", which are not known"}
	}
	return step{In, "namespaceSelector matches namespace " + r.Namespace}
}

func (c *chain) objectSelector(s *metav1.LabelSelector) step {
	if len(selectors.Terms(s)) == 0 {
		return step{In, ""}
	}
	r := c.request
	if r.Operation == admissionregistrationv1.Connect {
		return step{Out, "objectSelector never matches CONNECT requests, whose object has no labels"}
	}
	if r.Object == nil && r.OldObject == nil {
		return step{Maybe, "objectSelector depends on the labels of the object, which is not known"}
	}
	for _, object := range []map[string]any{r.Object, r.OldObject} {
		if object != nil && selects(s, labelsOf(object)) {
			return step{In, "objectSelector matches"}
		}
	}
	return step{Out, "objectSelector leaves the object out"}
}

func (c *chain) matchConditions(ctx context.Context, list []admissionregistrationv1.MatchCondition, failsClosed, params bool, sent schema.GroupVersionResource) []step {
	r := c.request
	r.Resource = sent
	r.Kind = sent.GroupVersion().WithKind(r.Kind.Kind)
	var out []step
	for _, m := range list {
		if about := c.unknown(m.Expression, params); about != "" {
			out = append(out, step{Maybe, fmt.Sprintf("condition %s depends on %s", m.Name, about)})
			continue
		}
		switch v := c.conditions.evaluate(ctx, m, r, params); {
		case errors.Is(v.err, errUnknown):
			out = append(out, step{Maybe, fmt.Sprintf("condition %s: %s", m.Name, v.err)})
		case v.err != nil && failsClosed:
			out = append(out, step{Refused, fmt.Sprintf("condition %s cannot be evaluated: %s", m.Name, firstLine(v.err.Error()))})
		case v.err != nil:
			out = append(out, step{Out, fmt.Sprintf("condition %s cannot be evaluated, and failures are ignored: %s", m.Name, firstLine(v.err.Error()))})
		case v.matches:
			out = append(out, step{In, fmt.Sprintf("condition %s is true", m.Name)})
		default:
			out = append(out, step{Out, fmt.Sprintf("condition %s is false", m.Name)})
		}
	}
	return out
}

// unknown names unknown data that an expression reads, or returns "".
func (c *chain) unknown(expression string, params bool) string {
	r := c.request
	withoutOld := strings.ReplaceAll(expression, "oldObject", "")
	switch {
	case params && strings.Contains(expression, "params"):
		return "the parameters of the policy"
	case readsObject.MatchString(withoutOld) && r.Object == nil && r.Operation != admissionregistrationv1.Delete:
		return "the object, which is not known"
	case strings.Contains(expression, "oldObject") && r.OldObject == nil && (r.Operation == admissionregistrationv1.Update || r.Operation == admissionregistrationv1.Delete):
		return "the old object, which is not known"
	case strings.Contains(expression, "request.userInfo") && r.User == "":
		return "who asks, which is not known"
	}
	return ""
}

func (c *chain) policies(ctx context.Context, phase Phase) []Link {
	mutating := phase == MutatingPolicies
	list := slices.DeleteFunc(slices.Clone(c.Inventory.policies), func(p *policy) bool { return p.mutating != mutating })
	slices.SortStableFunc(list, func(a, b *policy) int { return staticFirst(a.Object, b.Object) })
	var out []Link
	for _, p := range list {
		link := Link{Phase: phase, Name: p.Name, FailurePolicy: string(admissionregistrationv1.Fail), Static: p.static(),
			Reinvoked: mutating && p.reinvocation == admissionregistrationv1.IfNeededReinvocationPolicy}
		failsClosed := p.failurePolicy == nil || *p.failurePolicy == admissionregistrationv1.Fail
		if !failsClosed {
			link.FailurePolicy = string(admissionregistrationv1.Ignore)
		}
		steps, sent := c.matchResources(p.constraints, "matchConstraints")
		if mutating && c.request.Operation == admissionregistrationv1.Delete {
			steps = append(steps, step{Out, "mutating policies see no DELETE"})
		}
		if sent.Resource != "" { // the constraints match
			steps = append(steps, c.matchConditions(ctx, p.conditions, failsClosed, p.params, sent)...)
			link.Sent = c.sentAs(sent)
		}
		if rules.IsExemptAdmissionConfigurationResource(c.attributes) && !p.static() {
			steps = []step{{Out, "webhook configurations and policies are never seen by policies that the API registered"}}
		}
		bindings := slices.DeleteFunc(slices.Clone(c.bindings), func(b *policyBinding) bool { return b.mutating != mutating || b.policy != p.Name })
		slices.SortStableFunc(bindings, func(a, b *policyBinding) int { return strings.Compare(a.Name, b.Name) })
		if len(bindings) == 0 {
			link.Answer, link.Why = Out, "no binding says where the policy applies"
			if c.cluster && !c.complete[p.Kind+"Binding"] {
				link.Answer, link.Why = Maybe, "its bindings are not known"
			}
			out = append(out, link)
		}
		for _, b := range bindings {
			bound := link
			bound.Name = p.Name + "/" + b.Name
			for _, action := range b.actions {
				bound.Actions = append(bound.Actions, string(action))
			}
			ofBinding, _ := c.matchResources(b.match, "matchResources of the binding")
			all := slices.Concat(steps, ofBinding)
			if p.params {
				all = append(all, step{In, "once for each of its parameters"})
			}
			bound.Answer, bound.Why = conclude(all)
			out = append(out, bound)
		}
	}
	return out
}

// matchResources evaluates the constraints of a policy or binding. Without rules they
// match everything.
func (c *chain) matchResources(m *admissionregistrationv1.MatchResources, field string) ([]step, schema.GroupVersionResource) {
	if m == nil {
		return nil, c.request.Resource
	}
	equivalent := m.MatchPolicy == nil || *m.MatchPolicy == admissionregistrationv1.Equivalent // the API's default
	if excluded, rule, _ := c.rules(m.ExcludeResourceRules, equivalent); excluded {
		return []step{{Out, field + " leave out " + ruleText(rule)}}, schema.GroupVersionResource{}
	}
	sent, steps := c.request.Resource, []step(nil)
	if len(m.ResourceRules) > 0 {
		matched, rule, as := c.rules(m.ResourceRules, equivalent)
		if !matched {
			return []step{{Out, "no rule of " + field + " is for it"}}, schema.GroupVersionResource{}
		}
		sent = as
		steps = append(steps, step{In, "rule " + ruleText(rule)})
	}
	return append(steps, c.namespaceSelector(m.NamespaceSelector), c.objectSelector(m.ObjectSelector)), sent
}
