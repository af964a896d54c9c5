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
// [AtPath] sets it. [Webhook.Problems] reports what is wrong, which is asked before
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

// WebhookOption sets fields of a [Webhook].
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

// WithMatchPolicy sets whether the rules also select requests in equivalent versions.
func WithMatchPolicy(policy admissionregistrationv1.MatchPolicyType) WebhookOption {
	return func(w *Webhook) { w.MatchPolicy = policy }
}

// WithSideEffects sets None, or NoneOnDryRun for a handler that leaves them out on a dry run.
func WithSideEffects(class admissionregistrationv1.SideEffectClass) WebhookOption {
	return func(w *Webhook) { w.SideEffects = class }
}

// WithReinvocationPolicy sets whether a mutating webhook is called again after a later one
// has changed the object.
func WithReinvocationPolicy(policy admissionregistrationv1.ReinvocationPolicyType) WebhookOption {
	return func(w *Webhook) { w.ReinvocationPolicy = policy }
}

// WithReviewVersions sets the versions of AdmissionReview, in order of preference.
func WithReviewVersions(versions ...string) WebhookOption {
	return func(w *Webhook) { w.ReviewVersions = versions }
}

// WithAllowWedge gives the reason why the webhook may be registered although it can bring the
// cluster to a halt, see [Webhook].
func WithAllowWedge(reason string) WebhookOption { return func(w *Webhook) { w.AllowWedge = reason } }

// WithBackstop sets what stands in for a mutating webhook while its server is away.
func WithBackstop(backstop *Backstop) WebhookOption {
	return func(w *Webhook) { w.Backstop = backstop }
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
