// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// Type is the type of an admission webhook.
type Type string

// The two types of admission webhooks.
const (
	TypeMutating   Type = "Mutating"
	TypeValidating Type = "Validating"
)

// Webhook is a handler with everything the API server needs to call it. The fields are
// those of k8s.io/api/admissionregistration/v1; unset fields have the defaults stated here,
// which [Webhook.Defaulted] applies.
type Webhook struct {
	// Name is fully qualified, for example "poddefault.sallyport.io", and unique
	// in its server.
	Name string
	// Path is its URL path, for example "/apply-poddefault". It begins with a slash and is
	// unique in its server.
	Path string
	Type Type
	// Rules select the requests. At least one is required.
	Rules []admissionregistrationv1.RuleWithOperations
	// NamespaceSelector and ObjectSelector narrow the rules; nil selects all.
	NamespaceSelector *metav1.LabelSelector
	ObjectSelector    *metav1.LabelSelector
	// MatchConditions narrow them further, with CEL; at most 64.
	MatchConditions []admissionregistrationv1.MatchCondition
	// MatchPolicy is Equivalent if not set.
	MatchPolicy admissionregistrationv1.MatchPolicyType
	// FailurePolicy is Fail if not set.
	FailurePolicy admissionregistrationv1.FailurePolicyType
	// TimeoutSeconds is 5 if not set; the API server allows 1 to 30.
	TimeoutSeconds int32
	// SideEffects is None if not set. NoneOnDryRun is the only other choice.
	SideEffects admissionregistrationv1.SideEffectClass
	// ReinvocationPolicy is for mutating webhooks only, and IfNeeded if not set:
	// a handler must be idempotent in any case.
	ReinvocationPolicy admissionregistrationv1.ReinvocationPolicyType
	// ReviewVersions is v1, v1beta1 if not set, the order of preference.
	ReviewVersions []string
	// AllowWedge is the reason why the webhook may be registered although the
	// cluster could come to a halt while its server is away: it fails closed, and is
	// for all groups or resources, or for something vital (pods, nodes, leases, …)
	// without an exclusion. Without a reason, registration refuses it.
	AllowWedge string
	// Backstop, of a mutating webhook, stands in for it while its server is away; nil if
	// nothing does.
	Backstop *Backstop
	Handler  Handler

	nilOption error // of Mutating and Validating, which cannot return it
}

// Defaulted returns w with the defaults of its fields filled in.
func (w Webhook) Defaulted() Webhook {
	setDefault(&w.MatchPolicy, admissionregistrationv1.Equivalent)
	setDefault(&w.FailurePolicy, admissionregistrationv1.Fail)
	setDefault(&w.TimeoutSeconds, 5)
	setDefault(&w.SideEffects, admissionregistrationv1.SideEffectClassNone)
	if w.Type == TypeMutating {
		setDefault(&w.ReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy)
	}
	if len(w.ReviewVersions) == 0 {
		w.ReviewVersions = reviewversion.All()
	}
	return w
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// FieldError is a problem with a field of a [Webhook].
type FieldError struct {
	Webhook string // its name
	Field   string // as a webhook configuration has it: "rules[0].operations"
	Err     error
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("webhook %q: %s: %v", e.Webhook, e.Field, e.Err)
}

func (e *FieldError) Unwrap() error { return e.Err }

// Problems reports all problems of the definition, each a [FieldError]. What has none, the
// API server accepts too, save for the syntax of CEL expressions.
//
// A rule for a resource of a kind that the handler does not read is one: such a webhook would
// reject every request. Kinds are looked up in schemes, those of sub-resources are
// Kubernetes' own: an Eviction for pods/eviction, a Scale for each scale, and the parent's
// kind for status. Resources of unknown kinds are ignored.
func (w Webhook) Problems(schemes ...*runtime.Scheme) error {
	w = w.Defaulted()
	var errs []error
	add := func(field, format string, args ...any) {
		errs = append(errs, &FieldError{Webhook: w.Name, Field: field, Err: fmt.Errorf(format, args...)})
	}

	if w.nilOption != nil {
		add("options", "%w", w.nilOption)
	}
	if problems := validation.IsDNS1123Subdomain(w.Name); len(problems) > 0 {
		add("name", "%s", strings.Join(problems, "; "))
	} else if strings.Count(w.Name, ".") < 2 {
		add("name", "must have at least three parts separated by dots, for example check.crontab.example.com")
	}
	if u, err := url.Parse(w.Path); err != nil || !strings.HasPrefix(w.Path, "/") || u.Path != w.Path || strings.Contains(w.Path, "//") {
		add("path", "%q must begin with a slash, without query, fragment or empty segments", w.Path)
	} else if w.Path != "/" {
		// The API server's rule for the path of a service reference.
		for part := range strings.SplitSeq(strings.Trim(w.Path, "/"), "/") {
			if problems := validation.IsDNS1123Subdomain(part); len(problems) > 0 {
				add("path", "%q: part %q: %s", w.Path, part, strings.Join(problems, "; "))
			}
		}
	}
	if w.Type != TypeMutating && w.Type != TypeValidating {
		add("type", "is %q; choose %s or %s", w.Type, TypeMutating, TypeValidating)
	}
	if len(w.Rules) == 0 {
		add("rules", "are missing: the webhook would never be called")
	}
	for i, rule := range w.Rules {
		w.validateRule(rule, func(field, format string, args ...any) { add(fmt.Sprintf("rules[%d].%s", i, field), format, args...) })
	}
	for _, selector := range []struct {
		field string
		value *metav1.LabelSelector
	}{{"namespaceSelector", w.NamespaceSelector}, {"objectSelector", w.ObjectSelector}} {
		if _, err := metav1.LabelSelectorAsSelector(selector.value); err != nil {
			add(selector.field, "%w", err)
		}
	}
	w.validateConditions(add)
	oneOf(add, "matchPolicy", w.MatchPolicy, admissionregistrationv1.Exact, admissionregistrationv1.Equivalent)
	oneOf(add, "failurePolicy", w.FailurePolicy, admissionregistrationv1.Ignore, admissionregistrationv1.Fail)
	oneOf(add, "sideEffects", w.SideEffects, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)
	if w.TimeoutSeconds == timeoutOfZero {
		add("timeoutSeconds", "is 0; the API server allows 1 to 30: leave WithTimeout out for 5")
	} else if w.TimeoutSeconds < 1 || w.TimeoutSeconds > 30 {
		add("timeoutSeconds", "is %d; the API server allows 1 to 30", w.TimeoutSeconds)
	}
	if w.Type == TypeMutating {
		oneOf(add, "reinvocationPolicy", w.ReinvocationPolicy,
			admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy)
	} else if w.ReinvocationPolicy != "" {
		add("reinvocationPolicy", "is for mutating webhooks only")
	}
	reviewversion.Validate(w.ReviewVersions, func(format string, args ...any) { add("reviewVersions", format, args...) })
	if err := checkHandler(w.Handler); err != nil {
		add("handler", "%w", err)
	} else {
		w.validateOperations(add)
	}
	if w.Type == TypeValidating && w.Backstop != nil {
		add("backstop", "is for mutating webhooks only")
	}
	if err := w.Backstop.validate(); err != nil {
		add("backstop", "%w", err)
	}
	if w.Type == TypeValidating && changesObjects(w.Handler) {
		add("handler", "changes objects, which only mutating webhooks may")
	}
	return errors.Join(append(errs, w.kindProblems(kindsOf(schemes))...)...)
}

func (w Webhook) validateRule(rule admissionregistrationv1.RuleWithOperations, add func(field, format string, args ...any)) {
	if len(rule.Operations) == 0 {
		add("operations", "are missing")
	}
	for _, op := range rule.Operations {
		switch op {
		case admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update,
			admissionregistrationv1.Delete, admissionregistrationv1.Connect:
			if op == admissionregistrationv1.OperationAll && len(rule.Operations) > 1 {
				add("operations", `"*" must stand alone`)
			}
		default:
			add("operations", "%q is unknown; choose CREATE, UPDATE, DELETE, CONNECT or *", op)
		}
	}
	for _, list := range []struct {
		field  string
		values []string
	}{{"apiGroups", rule.APIGroups}, {"apiVersions", rule.APIVersions}, {"resources", rule.Resources}} {
		switch {
		case len(list.values) == 0:
			add(list.field, `is missing (the core group is "")`)
		case list.field != "resources" && len(list.values) > 1 && slices.Contains(list.values, "*"):
			add(list.field, `"*" must stand alone`)
		case list.field != "apiGroups" && slices.Contains(list.values, ""):
			add(list.field, "must not hold an empty string")
		}
	}
	for i, resource := range rule.Resources {
		if strings.ToLower(resource) != resource {
			add("resources", "%q is not a resource: names of resources are plural and in lower case, such as pods", resource)
		}
		for _, other := range rule.Resources[i+1:] {
			if covers(resource, other) || covers(other, resource) {
				add("resources", "%q and %q overlap: remove the resource that the wildcard covers", resource, other)
			}
		}
	}
	if rule.Scope != nil {
		switch *rule.Scope {
		case admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope:
		default:
			add("scope", "%q is unknown; choose Cluster, Namespaced or *", *rule.Scope)
		}
	}
}

// covers tells whether the API server refuses to take b beside the wildcard a: "*"
// are all resources without their sub-resources, "pods/*" all sub-resources of
// one, "*/scale" one sub-resource of all, "*/*" everything.
func covers(a, b string) bool {
	resource, sub, hasSub := strings.Cut(a, "/")
	ofResource, ofSub, ofHasSub := strings.Cut(b, "/")
	switch {
	case a == "*/*":
		return true
	case a == "*":
		return !ofHasSub
	case !hasSub || !ofHasSub:
		return false
	default:
		return sub == "*" && resource == ofResource || resource == "*" && sub == ofSub
	}
}

func (w Webhook) validateConditions(add func(field, format string, args ...any)) {
	if len(w.MatchConditions) > 64 {
		add("matchConditions", "are %d; the API server allows 64", len(w.MatchConditions))
	}
	names := map[string]bool{}
	for i, condition := range w.MatchConditions {
		field := fmt.Sprintf("matchConditions[%d]", i)
		if problems := validation.IsQualifiedName(condition.Name); len(problems) > 0 {
			add(field+".name", "%s", strings.Join(problems, "; "))
		}
		if names[condition.Name] {
			add(field+".name", "duplicate %q", condition.Name)
		}
		names[condition.Name] = true
		if strings.TrimSpace(condition.Expression) == "" {
			add(field+".expression", "is missing")
		}
	}
}

func oneOf[T ~string](add func(field, format string, args ...any), field string, value T, allowed ...T) {
	if slices.Contains(allowed, value) {
		return
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	add(field, "%q is not allowed; choose %s", value, strings.Join(names, " or "))
}
