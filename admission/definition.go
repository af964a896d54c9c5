// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"math"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mutating defines a webhook that may change objects. Its path is "/" and the name, unless
// [AtPath] sets it. Problems are reported by [Webhook]'s Validate, which is called before
// the webhook is served or registered.
func Mutating(name string, rules []admissionregistrationv1.RuleWithOperations, handler Handler, options ...WebhookOption) Webhook {
	return define(Webhook{Name: name, Type: TypeMutating, Rules: rules, Handler: handler}, options)
}

// Validating defines a webhook that admits or denies requests. See [Mutating].
func Validating(name string, rules []admissionregistrationv1.RuleWithOperations, handler Handler, options ...WebhookOption) Webhook {
	return define(Webhook{Name: name, Type: TypeValidating, Rules: rules, Handler: handler}, options)
}

func define(w Webhook, options []WebhookOption) Webhook {
	w.Path = "/" + w.Name
	w.Rules = slices.Clone(w.Rules)
	for i, option := range options {
		if option == nil {
			w.nilOption = nilOption(i)
			continue
		}
		option(&w)
	}
	return w
}

func nilOption(i int) error { return fmt.Errorf("option %d is nil: leave it out", i+1) }

// WebhookOption sets fields of a [Webhook]. Use a function literal for fields without an
// option.
type WebhookOption func(*Webhook)

// AtPath sets the URL path of the webhook.
func AtPath(path string) WebhookOption { return func(w *Webhook) { w.Path = path } }

// WithFailurePolicy sets what the API server does if calling the webhook fails.
func WithFailurePolicy(policy admissionregistrationv1.FailurePolicyType) WebhookOption {
	return func(w *Webhook) { w.FailurePolicy = policy }
}

// WithTimeout sets how many seconds the API server waits, 1 to 30. The default is 5.
func WithTimeout(seconds int32) WebhookOption {
	if seconds == 0 {
		seconds = timeoutOfZero // 0 in the field is the default
	}
	return func(w *Webhook) { w.TimeoutSeconds = seconds }
}

// timeoutOfZero stands for a timeout of 0 that was asked for.
const timeoutOfZero = math.MinInt32

// WithNamespaceSelector narrows the rules to objects in some namespaces.
func WithNamespaceSelector(selector *metav1.LabelSelector) WebhookOption {
	return func(w *Webhook) { w.NamespaceSelector = selector }
}

// WithObjectSelector narrows the rules to objects with some labels.
func WithObjectSelector(selector *metav1.LabelSelector) WebhookOption {
	return func(w *Webhook) { w.ObjectSelector = selector }
}

// WithMatchCondition adds a CEL condition that requests must meet.
func WithMatchCondition(name, expression string) WebhookOption {
	return func(w *Webhook) {
		w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: name, Expression: expression})
	}
}

// Rules returns a list of one rule: operations on a resource, which may be a sub-resource
// ("pods/eviction") or have "*" in each part. The default operations are CREATE and UPDATE.
// Join several with [slices.Concat].
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
