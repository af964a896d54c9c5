// SPDX-License-Identifier: Apache-2.0

package matcher

import (
	"maps"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object"
	listersv1 "k8s.io/client-go/listers/core/v1"

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// Webhook tests rules and selectors of a webhook. Sent is the resource as which the webhook sees the request, empty if no rule matches.
func (r Request) Webhook(rules []admissionregistrationv1.RuleWithOperations, policy *admissionregistrationv1.MatchPolicyType, namespaces, objects *metav1.LabelSelector) (steps []Step, sent schema.GroupVersionResource) {
	rule, sent, ok := r.rule(named(rules), policy)
	if !ok {
		return []Step{{Out, "no rule is for it"}}, sent
	}
	return []Step{{In, "rule " + RuleText(rule)}, r.namespaceSelector(namespaces), r.objectSelector(objects)}, sent
}

// Resources tests the constraints of a policy or binding, which the field names for messages. Without rules they match everything.
func (r Request) Resources(m *admissionregistrationv1.MatchResources, field string) (steps []Step, sent schema.GroupVersionResource) {
	if m == nil {
		return nil, r.Resource
	}
	if rule, _, excluded := r.rule(m.ExcludeResourceRules, m.MatchPolicy); excluded {
		return []Step{{Out, field + " leave out " + RuleText(rule)}}, sent
	}
	sent = r.Resource
	if len(m.ResourceRules) > 0 {
		rule, as, ok := r.rule(m.ResourceRules, m.MatchPolicy)
		if !ok {
			return []Step{{Out, "no rule of " + field + " is for it"}}, as
		}
		sent, steps = as, []Step{{In, "rule " + RuleText(rule)}}
	}
	return append(steps, r.namespaceSelector(m.NamespaceSelector), r.objectSelector(m.ObjectSelector)), sent
}

// Criteria are what the API server's own matcher, of k8s.io/apiserver/pkg/admission/plugin/policy/matching, reads. Without
// rules they match everything.
type Criteria admissionregistrationv1.MatchResources

// OfWebhook returns the criteria of a webhook that has rules.
func OfWebhook(rules []admissionregistrationv1.RuleWithOperations, policy *admissionregistrationv1.MatchPolicyType, namespaces, objects *metav1.LabelSelector) Criteria {
	return Criteria{ResourceRules: named(rules), MatchPolicy: policy, NamespaceSelector: namespaces, ObjectSelector: objects}
}

// GetMatchResources implements the matcher's MatchCriteria, as do the following.
func (c Criteria) GetMatchResources() admissionregistrationv1.MatchResources {
	return admissionregistrationv1.MatchResources(c)
}

// GetParsedNamespaceSelector is for the predicate of namespaces.
func (c Criteria) GetParsedNamespaceSelector() (labels.Selector, error) {
	return parsed(c.NamespaceSelector)
}

// GetParsedObjectSelector is for the predicate of objects.
func (c Criteria) GetParsedObjectSelector() (labels.Selector, error) {
	return parsed(c.ObjectSelector)
}

// parsed has the API's default: nil selects all.
func parsed(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// labelled gives every namespace the same labels.
type labelled struct {
	listersv1.NamespaceLister
	labels map[string]string
}

func (l labelled) Get(name string) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: l.labels}}, nil
}

// inNamespace asks the predicate, for labels of the namespace.
func (r Request) inNamespace(s *metav1.LabelSelector, set map[string]string) bool {
	matcher := namespace.Matcher{NamespaceLister: labelled{labels: set}}
	matches, err := matcher.MatchNamespaceSelector(Criteria{NamespaceSelector: s}, r.attributes())
	return matches && err == nil
}

func asStep(matches bool, field, what string) Step {
	if matches {
		return Step{In, field + " matches " + what}
	}
	return Step{Out, field + " leaves out " + what}
}

func (r Request) namespaceSelector(s *metav1.LabelSelector) Step {
	const field = "namespaceSelector"
	terms := selectors.Terms(s)
	isNamespace := r.Resource.Resource == "namespaces"
	set := map[string]string{corev1.LabelMetadataName: r.Namespace} // added by the API server
	maps.Copy(set, r.NamespaceLabels)
	switch {
	case len(terms) == 0:
		return Step{In, ""}
	case r.Namespace == "" && !isNamespace:
		return Step{In, field + " never excludes cluster-scoped objects"}
	case isNamespace && r.Subresource == "" && (r.Operation == admissionregistrationv1.Create || r.Operation == admissionregistrationv1.Update):
		if r.Object == nil {
			return Step{Maybe, field + " depends on the labels of the object, which are not known"}
		}
		return asStep(r.inNamespace(s, nil), field, "the object's own labels")
	case r.NamespaceLabels != nil:
		return asStep(r.inNamespace(s, set), field, "namespace "+r.Namespace)
	}
	unknown := false
	for _, term := range terms { // of the namespace, only the name is known
		if term.Key != corev1.LabelMetadataName {
			unknown = true
		} else if one := (&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{term}}); !r.inNamespace(one, set) {
			return Step{Out, field + " leaves out namespace " + r.Namespace}
		}
	}
	if unknown {
		return Step{Maybe, field + " depends on the labels of namespace " + r.Namespace + ", which are not known"}
	}
	return Step{In, field + " matches namespace " + r.Namespace}
}

func (r Request) objectSelector(s *metav1.LabelSelector) Step {
	if len(selectors.Terms(s)) == 0 {
		return Step{In, ""}
	}
	if r.Operation == admissionregistrationv1.Connect {
		return Step{Out, "objectSelector never matches CONNECT requests, whose object has no labels"}
	}
	matcher := object.Matcher{}
	switch matches, err := matcher.MatchObjectSelector(Criteria{ObjectSelector: s}, r.attributes()); {
	case matches:
		return Step{In, "objectSelector matches"}
	case err == nil && (r.unknownObject() || r.unknownOld()):
		return Step{Maybe, "objectSelector depends on the labels of the object, which is not known"}
	}
	return Step{Out, "objectSelector leaves the object out"}
}
