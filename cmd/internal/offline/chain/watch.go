// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/defaults"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
)

// errUnread says that a field is not known.
func errUnread(field string) string {
	if field == "request.options.fieldManager" {
		return "it reads " + field + ", which is not known here: --field-manager names it"
	}
	return "it reads " + field + ", which the API server sets and which is not known here"
}

// withVolumes says that two evaluations have different results.
const withVolumes = "it depends on the volume of the service account's token, which the API server adds to the pod"

// watchedMatcher records match conditions that exclude a request, fail, or are unknown.
type watchedMatcher struct {
	matchconditions.Matcher
	evaluation *evaluation
	step       Step
	fail       admissionregistrationv1.FailurePolicyType
	validator  *watchedValidator // records for itself; nil for a mutating policy
	reads      []reads.Read
}

// Match implements [matchconditions.Matcher].
func (m *watchedMatcher) Match(ctx context.Context, a *apiserveradmission.VersionedAttributes, param runtime.Object, rights authorizer.UnconditionalAuthorizer) matchconditions.MatchResult {
	e, step := m.evaluation, m.step
	step.Param = paramName(param)
	var result matchconditions.MatchResult
	unknown := e.rightsUnknown(func() { result = m.Matcher.Match(ctx, a, param, rights) })
	unread, err := e.unread(question{step.Phase, a, param}, m.reads)
	if err == nil && unread == "" && readsVolumes(m.reads) {
		if pod := defaults.WithToken(a.VersionedObject.Object()); pod != nil {
			if other := m.Matcher.Match(ctx, replaced(a, pod), param, rights); other.Matches != result.Matches || (other.Error == nil) != (result.Error == nil) {
				unread = "object.spec.volumes"
			}
		}
	}
	switch {
	case err != nil:
		return matchconditions.MatchResult{Error: err}
	case unknown:
		step.Outcome, step.Messages = Unknown, []string{"match conditions: " + errRights.Error()}
		result = matchconditions.MatchResult{}
	case unread != "":
		step.Outcome, step.Messages, step.unread = Unknown, []string{"match conditions: " + errUnread(unread)}, true
		result = matchconditions.MatchResult{}
	case result.Error != nil:
		step.Outcome, step.Messages = failed(m.fail), []string{"match conditions: " + result.Error.Error()}
	case !result.Matches && result.FailedConditionName != "":
		step.Outcome, step.Messages = Skipped, []string{"match condition " + result.FailedConditionName + " is false"}
	case !result.Matches: // an error, and the failure policy is Ignore
		step.Outcome, step.Messages = Ignored, []string{"its match conditions cannot be evaluated"}
	default:
		return result
	}
	if m.validator != nil {
		m.validator.excluded = &step
	} else if !e.again { // reinvocation evaluates the conditions of all policies
		if err := e.close(a.VersionedObject.Object()); err != nil {
			return matchconditions.MatchResult{Error: err}
		}
		e.add(step)
	}
	return result
}

// replaced returns attributes with another object.
func replaced(a *apiserveradmission.VersionedAttributes, object runtime.Object) *apiserveradmission.VersionedAttributes {
	out := *a
	out.VersionedObject = apiserveradmission.NewLazyObject(object)
	return &out
}

// watchedPatcher records mutations.
type watchedPatcher struct {
	patch.Patcher
	evaluation *evaluation
	step       Step
	fail       admissionregistrationv1.FailurePolicyType
	reads      []reads.Read
	objectList release.Presence // of the defect
}

// Patch implements [patch.Patcher].
func (p *watchedPatcher) Patch(ctx context.Context, r patch.Request, budget int64) (runtime.Object, error) {
	e, s := p.evaluation, p.step
	s.Param = paramName(r.OptionalVariables.VersionedParams)
	before := r.VersionedAttributes.VersionedObject.Object()
	step, err := e.begin(s, before)
	if err != nil {
		return nil, err
	}
	unread, err := e.unread(question{s.Phase, r.VersionedAttributes, r.OptionalVariables.VersionedParams}, p.reads)
	if err != nil {
		return nil, err
	}
	if unread != "" {
		step.Outcome, step.Messages, step.unread = Unknown, []string{errUnread(unread)}, true
		return before.DeepCopyObject(), nil
	}
	if meets, err := p.meetsDefect(step); meets {
		return before.DeepCopyObject(), err
	}
	var out runtime.Object
	if e.rightsUnknown(func() { out, err = p.Patcher.Patch(ctx, r, budget) }) {
		step.Outcome, step.Messages = Unknown, []string{errRights.Error()}
		return before.DeepCopyObject(), nil
	}
	if pod := defaults.WithToken(before); pod != nil && readsVolumes(p.reads) {
		other := r
		other.VersionedAttributes = replaced(r.VersionedAttributes, pod)
		if _, problem := p.Patcher.Patch(ctx, other, budget); (problem == nil) != (err == nil) {
			step.Outcome, step.Messages, step.unread = Unknown, []string{withVolumes}, true
			return before.DeepCopyObject(), nil
		}
	}
	if message, yes := onlyHere(e.Release, err); yes {
		step.Outcome, step.Messages = Unknown, []string{message}
		return before.DeepCopyObject(), nil
	}
	if err != nil {
		step.Outcome = failed(p.fail)
		step.Messages = append(step.Messages, err.Error())
	}
	return out, err
}

// watchedValidator records validations.
type watchedValidator struct {
	validating.Validator
	evaluation *evaluation
	step       Step
	fail       admissionregistrationv1.FailurePolicyType
	actions    []admissionregistrationv1.ValidationAction
	excluded   *Step // set by the match conditions of this call
	// reads and messages have what each validation and its message expression read.
	reads, messages [][]reads.Read
	annotations     []reads.Read
}

// Validate implements [validating.Validator].
func (v *watchedValidator) Validate(ctx context.Context, resource schema.GroupVersionResource, a *apiserveradmission.VersionedAttributes, param runtime.Object, namespace *corev1.Namespace, budget int64, rights authorizer.UnconditionalAuthorizer) validating.ValidateResult {
	e, step := v.evaluation, v.step
	step.Param, step.Outcome = paramName(param), Allowed
	v.excluded = nil
	var result validating.ValidateResult
	unknown := e.rightsUnknown(func() { result = v.Validator.Validate(ctx, resource, a, param, namespace, budget, rights) })
	switch {
	case v.excluded != nil && v.excluded.Outcome != Failed: // a failure is a decision
		e.add(*v.excluded)
		return validating.ValidateResult{}
	case unknown:
		step.Outcome, step.Messages = Unknown, []string{errRights.Error()}
		e.add(step)
		return validating.ValidateResult{}
	}
	if v.excluded == nil {
		if problem := v.leaveUnknown(ctx, &result, &step, resource, a, param, namespace, budget, rights); problem != nil {
			return validating.ValidateResult{Decisions: []validating.PolicyDecision{{Action: validating.ActionDeny, Evaluation: validating.EvalError, Message: problem.Error()}}}
		}
	}
	for _, d := range result.Decisions {
		switch {
		case d.Action == validating.ActionDeny && d.Evaluation == validating.EvalError:
			step.Messages = append(step.Messages, d.Message)
			step.Outcome = worse(step.Outcome, v.action(Failed))
		case d.Action == validating.ActionDeny:
			step.Messages = append(step.Messages, d.Message)
			step.Outcome = worse(step.Outcome, v.action(Denied))
		case d.Evaluation == validating.EvalError:
			step.Messages = append(step.Messages, d.Message)
			step.Outcome = worse(step.Outcome, Ignored)
		}
	}
	for _, annotation := range result.AuditAnnotations {
		if annotation.Action == validating.AuditAnnotationActionError {
			step.Messages = append(step.Messages, "audit annotation "+annotation.Key+": "+annotation.Error)
			step.Outcome = worse(step.Outcome, Failed) // whatever the actions are
		}
	}
	e.add(step)
	return result
}

// leaveUnknown removes the decisions that depend on what is not known from a result. What is known to deny
// the request still does.
func (v *watchedValidator) leaveUnknown(ctx context.Context, result *validating.ValidateResult, step *Step, resource schema.GroupVersionResource, a *apiserveradmission.VersionedAttributes,
	param runtime.Object, namespace *corev1.Namespace, budget int64, rights authorizer.UnconditionalAuthorizer,
) error {
	e, q := v.evaluation, question{step.Phase, a, param}
	undecided := func(message string) {
		step.Outcome, step.unread = Unknown, true
		if !slices.Contains(step.Messages, message) {
			step.Messages = append(step.Messages, message)
		}
	}
	var other validating.ValidateResult
	if pod := defaults.WithToken(a.VersionedObject.Object()); pod != nil && slices.ContainsFunc(v.reads, readsVolumes) {
		other = v.Validator.Validate(ctx, resource, replaced(a, pod), param, namespace, budget, rights)
	}
	for i := range result.Decisions {
		if i >= len(v.reads) || len(result.Decisions) != len(v.reads) { // an error of all validations
			break
		}
		d := &result.Decisions[i]
		unread, err := e.unread(q, v.reads[i])
		if err != nil {
			return err
		}
		switch {
		case unread != "":
			undecided(errUnread(unread))
			*d = validating.PolicyDecision{Action: validating.ActionAdmit, Evaluation: validating.EvalAdmit}
		case len(other.Decisions) > i && (other.Decisions[i].Action != d.Action || other.Decisions[i].Evaluation != d.Evaluation):
			undecided(withVolumes)
			*d = validating.PolicyDecision{Action: validating.ActionAdmit, Evaluation: validating.EvalAdmit}
		case d.Action == validating.ActionDeny && d.Evaluation == validating.EvalDeny:
			field, err := e.unread(q, v.messages[i])
			if err != nil {
				return err
			}
			if field != "" {
				step.Messages = append(step.Messages, "its message reads "+field+", which the API server sets")
			}
		}
	}
	unread, err := e.unread(q, v.annotations)
	if err == nil && unread != "" {
		undecided("audit annotation: " + errUnread(unread))
		result.AuditAnnotations = nil
	}
	return err
}

// action returns the outcome of a validation that is not met, by the actions of the binding.
func (v *watchedValidator) action(deny Outcome) Outcome {
	switch {
	case slices.Contains(v.actions, admissionregistrationv1.Deny):
		return deny
	case slices.Contains(v.actions, admissionregistrationv1.Warn):
		return Warned
	}
	return Audited
}

// severity is the order of outcomes of a validation.
var severity = []Outcome{Allowed, Ignored, Audited, Warned, Unknown, Denied, Failed}

func worse(a, b Outcome) Outcome {
	if slices.Index(severity, a) > slices.Index(severity, b) {
		return a
	}
	return b
}
