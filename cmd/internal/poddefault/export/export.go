// SPDX-License-Identifier: Apache-2.0

// Package export exports PodDefaults as policies that the API server evaluates itself
// with CEL (KEP-3962), so that pods are injected without a webhook. The policies
// reflect the objects at the time of the export.
//
// There is one MutatingAdmissionPolicy per namespace, because the API server evaluates
// policies in the random order of a Go map. Its mutations inject the PodDefaults in the
// webhook's order of application, several at once. A mutating policy cannot deny. A
// ValidatingAdmissionPolicy therefore checks the finished pod and refuses pods that the
// webhook would deny because of a conflict.
package export

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// NamePrefix and a namespace form the name of its exported objects.
const NamePrefix = "sallyport-poddefaults-"

// maxExpression is the maximum number of code points that the CEL parser accepts
// (github.com/google/cel-go, expressionSizeCodePointLimit).
const maxExpression = 100_000

// Exported is the replacement for the webhook.
type Exported struct {
	// Objects are for Kubernetes 1.36 and later, in order of creation: validation
	// before injection.
	Objects []runtime.Object
	// Notes say what the policies cannot do, one line each.
	Notes []string
}

// Export writes PodDefaults as policies. The input must contain all objects of each
// namespace, because policies know no others. Export uses only the container names of
// the settings. If a pod could silently become different from what the webhook would
// make it, there are no policies, and the error reports all problems of all objects.
func Export(objects []*kubeflowv1alpha1.PodDefault, settings poddefault.Settings) (*Exported, error) {
	namespaces := map[string][]*object{}
	var errs []error
	for _, pd := range objects {
		o := &object{Plan: plan.Compile(pd)}
		errs = append(errs, o.unsupported())
		namespaces[pd.Namespace] = append(namespaces[pd.Namespace], o)
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		slices.SortStableFunc(namespaces[name], func(a, b *object) int { return plan.InOrder(a.Plan, b.Plan) })
		errs = append(errs, together(namespaces[name]))
	}
	if err := errors.Join(append(errs, settings.Validate())...); err != nil {
		return nil, err
	}
	out, rounds := &Exported{}, 0
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		n := newNamespace(name, namespaces[name], settings)
		validating, mutating := n.validatingPolicy(), n.mutatingPolicy()
		errs = append(errs, n.sizes(validating.Spec.Variables))
		out.Objects = append(out.Objects, validating, n.validatingBinding(), mutating, n.mutatingBinding())
		rounds = max(rounds, len(mutating.Spec.Mutations))
	}
	out.Notes = notes(objects, rounds)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// namespace is the input for the policies of one namespace.
type namespace struct {
	name     string
	objects  []*object
	settings poddefault.Settings
}

// object is a PodDefault within the policies of its namespace.
type object struct {
	*plan.Plan
	selected  string // variable: whether it selects the pod
	conflicts string // variable: its conflicts with the pod
}

func newNamespace(name string, objects []*object, settings poddefault.Settings) *namespace {
	for i, o := range objects {
		o.selected, o.conflicts = fmt.Sprintf("selected%d", i), fmt.Sprintf("conflicts%d", i)
	}
	return &namespace{name, objects, settings}
}

// denies reports whether the object has an explicit conflict policy. Without one, some
// fields override or give way.
func (o *object) denies() bool { return o.Policy != "" }

func (n *namespace) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: NamePrefix + n.name, Labels: map[string]string{"app.kubernetes.io/part-of": "sallyport"}}
}

// constraints match pods created in the namespace.
func (n *namespace) constraints() *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: n.name}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: new(admissionregistrationv1.NamespacedScope),
			},
		}}},
	}
}

// conditions skip pods that no object selects. They cannot use variables.
func (n *namespace) conditions() []admissionregistrationv1.MatchCondition {
	annotations := "object.metadata.?annotations.orValue({})"
	conditions := []admissionregistrationv1.MatchCondition{
		{Name: "not-excluded", Expression: annotations + "[?" + quote(meta.ExcludeAnnotation) + "].orValue(\"\") != \"true\""},
		{Name: "not-a-mirror-pod", Expression: "!(" + quote(meta.MirrorAnnotation) + " in " + annotations + ")"},
	}
	var selectors []string
	for _, o := range n.objects {
		selectors = append(selectors, "("+selects(o.Selector(), "L")+")")
	}
	return append(conditions, admissionregistrationv1.MatchCondition{
		Name: "selected", Expression: "[object.metadata.?labels.orValue({})].exists(L, " + strings.Join(selectors, " || ") + ")",
	})
}

// variables returns the variables of both policies.
func (n *namespace) variables() []admissionregistrationv1.Variable {
	variables := []admissionregistrationv1.Variable{{Name: "labels", Expression: "object.metadata.?labels.orValue({})"}}
	var names, injected []string
	for _, o := range n.objects {
		variables = append(variables, admissionregistrationv1.Variable{Name: o.selected, Expression: selects(o.Selector(), "variables.labels")})
		if own := o.containerNames(); len(own) > 0 {
			injected = append(injected, "variables."+o.selected+" ? "+literal(own)+" : []")
		}
	}
	for _, o := range slices.SortedFunc(slices.Values(n.objects), func(a, b *object) int { return strings.Compare(a.Name(), b.Name()) }) {
		names = append(names, "variables."+o.selected+" ? ["+quote(o.Name())+"] : []")
	}
	return append(variables,
		admissionregistrationv1.Variable{Name: "names", Expression: flatten(names)},
		admissionregistrationv1.Variable{Name: "injected", Expression: flatten(injected)},
	)
}

func (n *namespace) mutatingPolicy() *admissionregistrationv1.MutatingAdmissionPolicy {
	p := &admissionregistrationv1.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: n.meta(),
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   n.constraints(),
			MatchConditions:    n.conditions(),
			Variables:          append(n.variables(), n.tokens()...),
			FailurePolicy:      new(admissionregistrationv1.Fail),
			ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
		},
	}
	for _, expression := range n.mutations() {
		p.Spec.Mutations = append(p.Spec.Mutations, mutation(expression))
	}
	return p
}

func mutation(expression string) admissionregistrationv1.Mutation {
	return admissionregistrationv1.Mutation{
		PatchType: admissionregistrationv1.PatchTypeJSONPatch,
		JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression},
	}
}

func (n *namespace) mutatingBinding() *admissionregistrationv1.MutatingAdmissionPolicyBinding {
	return &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicyBinding"},
		ObjectMeta: n.meta(),
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: n.meta().Name},
	}
}

func (n *namespace) validatingPolicy() *admissionregistrationv1.ValidatingAdmissionPolicy {
	variables := n.variables()
	var all []string
	for _, o := range n.objects {
		variables = append(variables, admissionregistrationv1.Variable{Name: o.conflicts, Expression: n.disagreements(o)})
		all = append(all, "variables."+o.conflicts)
	}
	variables = append(variables, admissionregistrationv1.Variable{Name: "conflicts", Expression: flatten(all)})
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: n.meta(),
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: n.constraints(),
			MatchConditions:  n.conditions(),
			Variables:        variables,
			Validations: []admissionregistrationv1.Validation{{
				Expression:        "size(variables.conflicts) == 0",
				MessageExpression: messageExpression,
				Message:           "conflict occurred while applying poddefaults; change the pod or a PodDefault" + remedy,
				Reason:            new(metav1.StatusReasonForbidden),
			}},
			FailurePolicy: new(admissionregistrationv1.Fail),
		},
	}
}

func (n *namespace) validatingBinding() *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: n.meta(),
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: n.meta().Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

// sizes rejects expressions that are too long for the API server.
func (n *namespace) sizes(variables []admissionregistrationv1.Variable) error {
	var errs []error
	for _, o := range n.objects {
		longest := utf8.RuneCountInString(n.injection([]*object{o}))
		for _, v := range variables {
			if v.Name == o.conflicts {
				longest = max(longest, utf8.RuneCountInString(v.Expression))
			}
		}
		if longest > maxExpression {
			errs = append(errs, fmt.Errorf("%s: it takes an expression of %d characters, and the API server parses %d: split the object, or use the webhook", o, longest, maxExpression))
		}
	}
	return errors.Join(errs...)
}
