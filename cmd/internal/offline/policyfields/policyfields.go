// SPDX-License-Identifier: Apache-2.0

// Package policyfields checks fields of policies and bindings as the API server does when they are created: names, values that are
// one of several, selectors and rules. Expressions are not compiled here. Defaults need not be set.
package policyfields

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
)

var spec = field.NewPath("spec")

// Text says what is wrong, without "spec.".
func Text(err *field.Error) string {
	return strings.NewReplacer(": Required value: ", " ", ": Invalid value: null: ", " ").Replace(strings.TrimPrefix(err.Error(), "spec."))
}

// Join returns an error with all texts; nil without errors.
func Join(errs field.ErrorList) error {
	var all []error
	for _, err := range errs {
		all = append(all, errors.New(Text(err)))
	}
	return errors.Join(all...)
}

// ValidatingPolicy returns what is wrong in a policy with a name.
func ValidatingPolicy(name string, s *admissionregistrationv1.ValidatingAdmissionPolicySpec) field.ErrorList {
	errs := policy(s.FailurePolicy, s.ParamKind, s.MatchConstraints, s.MatchConditions, s.Variables)
	if len(s.Validations) == 0 && len(s.AuditAnnotations) == 0 {
		errs = append(errs, field.Required(spec.Child("validations"), "and auditAnnotations are missing"))
	}
	for i, v := range s.Validations {
		at := spec.Child("validations").Index(i)
		if v.Reason != nil {
			errs = append(errs, oneOf(at.Child("reason"), *v.Reason, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)...)
		}
		for _, of := range [][2]string{{"message", v.Message}, {"messageExpression", v.MessageExpression}} {
			if of[1] != "" && strings.TrimSpace(of[1]) == "" {
				errs = append(errs, field.Invalid(at.Child(of[0]), nil, "is blank"))
			}
		}
		if strings.ContainsAny(strings.TrimSpace(v.Message), "\r\n") {
			errs = append(errs, field.Invalid(at.Child("message"), nil, "has line breaks"))
		}
	}
	const maxAnnotations = 20
	if len(s.AuditAnnotations) > maxAnnotations {
		errs = append(errs, field.TooMany(spec.Child("auditAnnotations"), len(s.AuditAnnotations), maxAnnotations))
	}
	keys := map[string]bool{}
	for i, a := range s.AuditAnnotations {
		at := spec.Child("auditAnnotations").Index(i).Child("key")
		errs = append(errs, invalid(at, a.Key, utilvalidation.IsQualifiedName(name+"/"+a.Key))...)
		if keys[a.Key] {
			errs = append(errs, field.Duplicate(at, a.Key))
		}
		keys[a.Key] = true
	}
	return errs
}

// MutatingPolicy returns what is wrong in a policy.
func MutatingPolicy(s *admissionregistrationv1.MutatingAdmissionPolicySpec) field.ErrorList {
	errs := policy(s.FailurePolicy, s.ParamKind, s.MatchConstraints, s.MatchConditions, s.Variables)
	errs = append(errs, oneOf(spec.Child("reinvocationPolicy"), s.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy)...)
	if len(s.Mutations) == 0 {
		errs = append(errs, field.Required(spec.Child("mutations"), "are missing"))
	}
	for i, m := range s.Mutations {
		patch, apply := admissionregistrationv1.PatchTypeJSONPatch, admissionregistrationv1.PatchTypeApplyConfiguration
		at := spec.Child("mutations").Index(i)
		unknown := oneOf(at.Child("patchType"), m.PatchType, patch, apply)
		if errs = append(errs, unknown...); len(unknown) == 0 && ((m.PatchType == patch) != (m.JSONPatch != nil) || (m.PatchType == apply) != (m.ApplyConfiguration != nil)) {
			errs = append(errs, field.Invalid(at, nil, "patchType does not fit the fields that are set"))
		}
	}
	if s.MatchConstraints != nil {
		for i, rule := range s.MatchConstraints.ResourceRules {
			for _, operation := range rule.Operations {
				errs = append(errs, oneOf(spec.Child("matchConstraints", "resourceRules").Index(i).Child("operations"), operation, admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Connect)...)
			}
		}
	}
	return errs
}

// ValidatingBinding returns what is wrong in a binding.
func ValidatingBinding(s *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) field.ErrorList {
	errs := MutatingBinding(&admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: s.PolicyName, ParamRef: s.ParamRef, MatchResources: s.MatchResources})
	at, seen := spec.Child("validationActions"), map[admissionregistrationv1.ValidationAction]bool{}
	if len(s.ValidationActions) == 0 {
		errs = append(errs, field.Required(at, "are missing: Deny, Warn or Audit"))
	}
	for i, action := range s.ValidationActions {
		errs = append(errs, oneOf(at.Index(i), action, admissionregistrationv1.Deny, admissionregistrationv1.Warn, admissionregistrationv1.Audit)...)
		if seen[action] {
			errs = append(errs, field.Duplicate(at.Index(i), action))
		}
		seen[action] = true
	}
	if seen[admissionregistrationv1.Deny] && seen[admissionregistrationv1.Warn] {
		errs = append(errs, field.Invalid(at, nil, "has both Deny and Warn"))
	}
	return errs
}

// MutatingBinding returns what is wrong in a binding.
func MutatingBinding(s *admissionregistrationv1.MutatingAdmissionPolicyBindingSpec) field.ErrorList {
	var errs field.ErrorList
	if s.PolicyName == "" {
		errs = append(errs, field.Required(spec.Child("policyName"), "is missing"))
	} else {
		errs = append(errs, invalid(spec.Child("policyName"), s.PolicyName, validation.NameIsDNSSubdomain(s.PolicyName, false))...)
	}
	errs = append(errs, matchResources(s.MatchResources, spec.Child("matchResources"))...)
	ref, at := s.ParamRef, spec.Child("paramRef")
	if ref == nil {
		return errs
	}
	if (ref.Name == "") == (ref.Selector == nil) {
		errs = append(errs, field.Required(at, "has to have either a name or a selector"))
	}
	if ref.Name != "" {
		errs = append(errs, invalid(at.Child("name"), ref.Name, content.IsPathSegmentName(ref.Name))...)
	}
	errs = append(errs, selector(ref.Selector, at.Child("selector"))...)
	if ref.ParameterNotFoundAction == nil {
		return append(errs, field.Required(at.Child("parameterNotFoundAction"), "is missing: Allow or Deny"))
	}
	return append(errs, oneOf(at.Child("parameterNotFoundAction"), *ref.ParameterNotFoundAction, admissionregistrationv1.AllowAction, admissionregistrationv1.DenyAction)...)
}

// policy checks what both kinds have.
func policy(failure *admissionregistrationv1.FailurePolicyType, kind *admissionregistrationv1.ParamKind, match *admissionregistrationv1.MatchResources, conditions []admissionregistrationv1.MatchCondition, variables []admissionregistrationv1.Variable) field.ErrorList {
	var errs field.ErrorList
	if failure != nil {
		errs = append(errs, oneOf(spec.Child("failurePolicy"), *failure, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)...)
	}
	if kind != nil {
		errs = append(errs, paramKind(kind)...)
	}
	if match == nil || len(match.ResourceRules) == 0 {
		errs = append(errs, field.Required(spec.Child("matchConstraints", "resourceRules"), "are missing"))
	}
	errs = append(errs, matchResources(match, spec.Child("matchConstraints"))...)
	const maxConditions = 64
	if len(conditions) > maxConditions {
		errs = append(errs, field.TooMany(spec.Child("matchConditions"), len(conditions), maxConditions))
	}
	names := map[string]bool{}
	for i, c := range conditions {
		at := spec.Child("matchConditions").Index(i).Child("name")
		errs = append(errs, invalid(at, c.Name, utilvalidation.IsQualifiedName(c.Name))...)
		if names[c.Name] {
			errs = append(errs, field.Duplicate(at, c.Name))
		}
		names[c.Name] = true
	}
	for i, v := range variables {
		if !identifier.MatchString(v.Name) || slices.Contains(reserved, v.Name) {
			errs = append(errs, field.Invalid(spec.Child("variables").Index(i).Child("name"), v.Name, "must be a valid CEL identifier"))
		}
	}
	return errs
}

// identifier and reserved are CEL's.
var (
	identifier = regexp.MustCompile("^[_a-zA-Z][_a-zA-Z0-9]*$")
	reserved   = strings.Fields("true false null in as break const continue else for function if import let loop package namespace return var void while")
)

func paramKind(of *admissionregistrationv1.ParamKind) field.ErrorList {
	at := spec.Child("paramKind")
	group, version, grouped := strings.Cut(of.APIVersion, "/")
	if !grouped {
		group, version = "", group
	}
	var errs field.ErrorList
	if group != "" {
		errs = append(errs, invalid(at.Child("apiVersion"), of.APIVersion, utilvalidation.IsDNS1123Subdomain(group))...)
	}
	errs = append(errs, invalid(at.Child("apiVersion"), of.APIVersion, utilvalidation.IsDNS1035Label(version))...)
	return append(errs, invalid(at.Child("kind"), of.Kind, utilvalidation.IsDNS1035Label(strings.ToLower(of.Kind)))...)
}

func matchResources(m *admissionregistrationv1.MatchResources, at *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	var errs field.ErrorList
	if m.MatchPolicy != nil {
		errs = append(errs, oneOf(at.Child("matchPolicy"), *m.MatchPolicy, admissionregistrationv1.Exact, admissionregistrationv1.Equivalent)...)
	}
	errs = append(errs, selector(m.NamespaceSelector, at.Child("namespaceSelector"))...)
	errs = append(errs, selector(m.ObjectSelector, at.Child("objectSelector"))...)
	errs = append(errs, rules(m.ResourceRules, at.Child("resourceRules"))...)
	return append(errs, rules(m.ExcludeResourceRules, at.Child("excludeResourceRules"))...)
}

func selector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
}

func rules(list []admissionregistrationv1.NamedRuleWithOperations, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range list {
		seen := map[string]bool{}
		for _, name := range rule.ResourceNames {
			errs = append(errs, invalid(at.Index(i).Child("resourceNames"), name, content.IsPathSegmentName(name))...)
			if seen[name] {
				errs = append(errs, field.Duplicate(at.Index(i).Child("resourceNames"), name))
			}
			seen[name] = true
		}
		// The rules of webhooks are the same.
		webhook := admission.Webhook{Name: "rules.example.com", Type: admission.TypeValidating, Rules: []admissionregistrationv1.RuleWithOperations{rule.RuleWithOperations}}
		joined, _ := webhook.Problems().(interface{ Unwrap() []error })
		if joined == nil {
			continue
		}
		for _, err := range joined.Unwrap() {
			var problem *admission.FieldError
			if errors.As(err, &problem) && strings.HasPrefix(problem.Field, "rules") {
				errs = append(errs, field.Invalid(at.Index(i), nil, problem.Err.Error()))
			}
		}
	}
	return errs
}

func oneOf[T ~string](at *field.Path, value T, of ...T) field.ErrorList {
	switch {
	case slices.Contains(of, value):
		return nil
	case value == "":
		return field.ErrorList{field.Required(at, "is missing")}
	}
	return field.ErrorList{field.NotSupported(at, value, of)}
}

func invalid(at *field.Path, value string, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(at, value, message))
	}
	return errs
}
