// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
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

// Link is a policy or webhook, and whether it sees the request.
type Link struct {
	Phase Phase `json:"phase"`
	// Name is "configuration/webhook", or "policy/binding".
	Name   string         `json:"name"`
	Answer matcher.Answer `json:"answer"`
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
func (in *Inventory) Chain(ctx context.Context, r matcher.Request) []Link {
	if n, ok := in.namespacesByName[r.Namespace]; ok && r.NamespaceLabels == nil {
		r.NamespaceLabels = map[string]string{}
		maps.Copy(r.NamespaceLabels, n.value.Labels)
	}
	c := &chain{Inventory: in, request: r}
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
	request matcher.Request
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
	if why := c.request.UnseenByWebhooks(w.config.static()); why != "" {
		link.Answer, link.Why = matcher.Out, why
		return link
	}
	steps, sent := c.request.Webhook(w.Rules, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector)
	if sent.Resource != "" {
		link.Sent = c.sentAs(sent)
		steps = append(steps, c.request.Conditions(ctx, &c.conditions, w.MatchConditions, w.failsClosed(), false, sent)...)
	}
	link.Answer, link.Why = matcher.Conclude(steps)
	return link
}

func (c *chain) sentAs(sent schema.GroupVersionResource) string {
	if sent == c.request.Resource {
		return ""
	}
	return sent.GroupVersion().String()
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
		steps, sent := c.request.Resources(p.constraints, "matchConstraints")
		if sent.Resource != "" { // the constraints match
			steps = append(steps, c.request.Conditions(ctx, &c.conditions, p.conditions, failsClosed, p.params, sent)...)
			link.Sent = c.sentAs(sent)
		}
		if why := c.request.UnseenByPolicies(p.static(), mutating); why != "" {
			steps = []matcher.Step{{Answer: matcher.Out, Why: why}}
		}
		bindings := slices.DeleteFunc(slices.Clone(c.bindings), func(b *policyBinding) bool { return b.mutating != mutating || b.policy != p.Name })
		slices.SortStableFunc(bindings, func(a, b *policyBinding) int { return strings.Compare(a.Name, b.Name) })
		if len(bindings) == 0 {
			link.Answer, link.Why = matcher.Out, "no binding says where the policy applies"
			if c.cluster && !c.complete[p.Kind+"Binding"] {
				link.Answer, link.Why = matcher.Maybe, "its bindings are not known"
			}
			out = append(out, link)
		}
		for _, b := range bindings {
			bound := link
			bound.Name = p.Name + "/" + b.Name
			for _, action := range b.actions {
				bound.Actions = append(bound.Actions, string(action))
			}
			ofBinding, _ := c.request.Resources(b.match, "matchResources of the binding")
			all := slices.Concat(steps, ofBinding)
			if p.params {
				all = append(all, matcher.Step{Answer: matcher.In, Why: "once for each of its parameters"})
			}
			bound.Answer, bound.Why = matcher.Conclude(all)
			out = append(out, bound)
		}
	}
	return out
}
