// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mutating defines a webhook that may change objects. Its path is "/" and the name,
// unless [AtPath] says otherwise. Mistakes are reported by [Webhook]'s Validate,
// which whoever serves or registers the webhook calls.
func Mutating(name string, rules []admissionregistrationv1.RuleWithOperations, handler Handler, options ...WebhookOption) Webhook {
	return define(Webhook{Name: name, Type: TypeMutating, Rules: rules, Handler: handler}, options)
}

// Validating defines a webhook that admits or refuses requests. See [Mutating].
func Validating(name string, rules []admissionregistrationv1.RuleWithOperations, handler Handler, options ...WebhookOption) Webhook {
	return define(Webhook{Name: name, Type: TypeValidating, Rules: rules, Handler: handler}, options)
}

func define(w Webhook, options []WebhookOption) Webhook {
	w.Path = "/" + w.Name
	w.Rules = slices.Clone(w.Rules)
	for _, option := range options {
		option(&w)
	}
	return w
}

// WebhookOption sets fields of a [Webhook]. Those without an option of their own are
// set by a function literal.
type WebhookOption func(*Webhook)

// AtPath sets the path by which the API server calls the webhook.
func AtPath(path string) WebhookOption { return func(w *Webhook) { w.Path = path } }

// WithFailurePolicy says what becomes of an object when the webhook is at fault.
func WithFailurePolicy(policy admissionregistrationv1.FailurePolicyType) WebhookOption {
	return func(w *Webhook) { w.FailurePolicy = policy }
}

// WithTimeout sets how many seconds the API server waits, 1 to 30.
func WithTimeout(seconds int32) WebhookOption { return func(w *Webhook) { w.TimeoutSeconds = seconds } }

// WithNamespaceSelector narrows the rules to objects in some namespaces.
func WithNamespaceSelector(selector *metav1.LabelSelector) WebhookOption {
	return func(w *Webhook) { w.NamespaceSelector = selector }
}

// WithObjectSelector narrows the rules to objects with some labels.
func WithObjectSelector(selector *metav1.LabelSelector) WebhookOption {
	return func(w *Webhook) { w.ObjectSelector = selector }
}

// WithMatchCondition adds a condition, in CEL, that requests must meet.
func WithMatchCondition(name, expression string) WebhookOption {
	return func(w *Webhook) {
		w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: name, Expression: expression})
	}
}

// Rules is one rule, as a list: these operations on this resource, which may be a
// sub-resource ("pods/eviction") or, in each part, "*". Without operations it is
// CREATE and UPDATE. Join several with [slices.Concat].
func Rules(resource schema.GroupVersionResource, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	if len(operations) == 0 {
		operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	}
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version}, Resources: []string{resource.Resource},
		},
	}}
}
