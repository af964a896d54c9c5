// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/objects"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
)

// phase is a plugin of kube-apiserver, ready for requests.
type phase func(ctx context.Context, a apiserveradmission.Attributes) error

// mutatingPolicies prepares kube-apiserver's plugin MutatingAdmissionPolicy. It handles no DELETE.
func (e *evaluation) mutatingPolicies(of *matching.Matcher) (phase, error) {
	var hooks []mutating.PolicyHook
	var errs []error
	for _, p := range e.objects.MutatingPolicies {
		bound := false
		for _, binding := range e.objects.MutatingBindings {
			if binding.Value.Spec.PolicyName != p.Value.Name {
				continue
			}
			bound = true
			step := Step{Phase: lint.MutatingPolicies, Name: p.Value.Name + "/" + binding.Value.Name}
			evaluator, err := e.compileMutating(p.Value, step)
			if err != nil {
				errs = append(errs, p.ErrorAt("/spec", p.Title()+": "+err.Error()))
				break
			}
			hook := mutating.PolicyHook{Policy: p.Value, Bindings: []*admissionregistrationv1.MutatingAdmissionPolicyBinding{binding.Value}, Evaluator: evaluator}
			hook.ParamInformer, hook.ParamScope, hook.ConfigurationError = e.params(p.Value.Spec.ParamKind)
			hooks = append(hooks, hook)
		}
		if bound {
			continue
		}
		// The API server compiles a policy when it is written, before there is a binding.
		if _, err := e.compileMutating(p.Value, Step{}); err != nil {
			errs = append(errs, p.ErrorAt("/spec", p.Title()+": "+err.Error()))
		}
	}
	m, dispatcher := generic.NewPolicyMatcher(of), mutating.NewDispatcher(e, of, e.kinds)
	return func(ctx context.Context, a apiserveradmission.Attributes) error {
		if a.GetOperation() == apiserveradmission.Delete || matcher.IsReview(a.GetResource().GroupResource()) {
			return nil
		}
		hooks := slices.DeleteFunc(slices.Clone(hooks), func(h mutating.PolicyHook) bool {
			return matcher.IsPolicy(a.GetResource().GroupResource()) && !objects.Static(h.Policy.Name)
		})
		for _, h := range hooks {
			e.notePolicy(m, a, lint.MutatingPolicies, mutating.NewMutatingAdmissionPolicyAccessor(h.Policy), mutating.NewMutatingAdmissionPolicyBindingAccessor(h.Bindings[0]), h.ParamInformer, h.ParamScope, h.ConfigurationError)
		}
		if err := e.notePolicyOrder(ctx, a, hooks, dispatcher); err != nil {
			return err
		}
		refused := dispatcher.Dispatch(ctx, a, e.kinds, hooks)
		if e.crashed != nil {
			refused = e.crashed
		}
		return errors.Join(refused, e.close(a.GetObject()))
	}, errors.Join(errs...)
}

// validatingPolicies prepares kube-apiserver's plugin ValidatingAdmissionPolicy.
func (e *evaluation) validatingPolicies(of *matching.Matcher) (phase, error) {
	var hooks []validating.PolicyHook
	var errs []error
	for _, p := range e.objects.ValidatingPolicies {
		bound := false
		for _, binding := range e.objects.ValidatingBindings {
			if binding.Value.Spec.PolicyName != p.Value.Name {
				continue
			}
			bound = true
			evaluator, err := e.compileValidating(p.Value, binding.Value)
			if err != nil {
				errs = append(errs, p.ErrorAt("/spec", p.Title()+": "+err.Error()))
				break
			}
			hook := validating.PolicyHook{Policy: p.Value, Bindings: []*admissionregistrationv1.ValidatingAdmissionPolicyBinding{binding.Value}, Evaluator: evaluator}
			hook.ParamInformer, hook.ParamScope, hook.ConfigurationError = e.params(p.Value.Spec.ParamKind)
			hooks = append(hooks, hook)
		}
		if bound {
			continue
		}
		if _, err := e.compileValidating(p.Value, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}); err != nil {
			errs = append(errs, p.ErrorAt("/spec", p.Title()+": "+err.Error()))
		}
	}
	m := generic.NewPolicyMatcher(of)
	dispatcher := validating.NewDispatcher(e, m)
	return func(ctx context.Context, a apiserveradmission.Attributes) error {
		if matcher.IsReview(a.GetResource().GroupResource()) {
			return nil
		}
		hooks := slices.DeleteFunc(slices.Clone(hooks), func(h validating.PolicyHook) bool {
			return matcher.IsPolicy(a.GetResource().GroupResource()) && !objects.Static(h.Policy.Name)
		})
		for _, h := range hooks {
			e.notePolicy(m, a, lint.ValidatingPolicies, validating.NewValidatingAdmissionPolicyAccessor(h.Policy), validating.NewValidatingAdmissionPolicyBindingAccessor(h.Bindings[0]), h.ParamInformer, h.ParamScope, h.ConfigurationError)
		}
		return dispatcher.Dispatch(ctx, a, e.kinds, hooks)
	}, errors.Join(errs...)
}

// notePolicy records a policy that applies to a request and is not evaluated: something of it is not
// known to the API server, or there are no parameters.
func (e *evaluation) notePolicy(m generic.PolicyMatcher, a apiserveradmission.Attributes, phase lint.Phase, p generic.PolicyAccessor, b generic.BindingAccessor, informer informers.GenericInformer, scope meta.RESTScope, problem error) {
	if e.again {
		return
	}
	step := Step{Phase: phase, Name: p.GetName() + "/" + b.GetName()}
	matches, _, _, err := m.DefinitionMatches(a, e.kinds, p)
	if matches && err == nil && problem == nil {
		matches, err = m.BindingMatches(a, e.kinds, b)
	}
	switch {
	case err != nil:
	case !matches:
		return
	case problem != nil:
		err = problem
	default:
		var found []runtime.Object
		if found, err = generic.CollectParams(p.GetParamKind(), informer, scope, b.GetParamRef(), a.GetNamespace(), nil, nil); err == nil && len(found) == 0 {
			step.Outcome, step.Messages = Skipped, []string{"there is no parameter, and parameterNotFoundAction is Allow"}
			e.add(step)
		}
	}
	if err != nil {
		step.Outcome, step.Messages = failed(*p.GetFailurePolicy()), []string{err.Error()}
		e.add(step)
	}
}

func (e *evaluation) compileMutating(p *admissionregistrationv1.MutatingAdmissionPolicy, step Step) (mutating.PolicyEvaluator, error) {
	c, err := e.compilation(p.Spec.Variables, p.Spec.ParamKind != nil)
	if err != nil {
		return mutating.PolicyEvaluator{}, err
	}
	out := mutating.PolicyEvaluator{CompositedCompiler: c.CompositedCompiler}
	if m := c.Matcher(p.Spec.MatchConditions, p.Spec.FailurePolicy, p.Name); m != nil {
		out.Matcher = &watchedMatcher{Matcher: m, evaluation: e, step: step, fail: *p.Spec.FailurePolicy, reads: c.ReadsOf(p.Spec.MatchConditions)}
	}
	options := c.Options
	options.HasPatchTypes = true
	for i, m := range p.Spec.Mutations {
		var compiled cel.MutatingEvaluator
		var patcher patch.Patcher
		var found []reads.Read
		objectList := release.Absent
		switch {
		case m.PatchType == admissionregistrationv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			compiled = c.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, options, c.Mode)
			patcher, found = patch.NewJSONPatcher(compiled), c.Reads(m.JSONPatch.Expression)
			objectList = release.Find(release.ObjectList).Found(reads.Parse(m.JSONPatch.Expression))
		case m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			compiled = c.CompileMutatingEvaluator(&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, options, c.Mode)
			patcher, found = patch.NewApplyConfigurationPatcher(compiled), c.Reads(m.ApplyConfiguration.Expression)
		default:
			c.Errs = append(c.Errs, fmt.Errorf("mutations[%d]: patchType %q has no jsonPatch or applyConfiguration of its own", i, m.PatchType))
			continue
		}
		c.Errs = append(c.Errs, compiled.CompilationErrors()...)
		out.Mutators = append(out.Mutators, &watchedPatcher{Patcher: patcher, evaluation: e, step: step, fail: *p.Spec.FailurePolicy, reads: found, objectList: objectList})
	}
	return out, errors.Join(c.Errs...)
}

func (e *evaluation) compileValidating(p *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) (validating.Validator, error) {
	c, err := e.compilation(p.Spec.Variables, p.Spec.ParamKind != nil)
	if err != nil {
		return nil, err
	}
	validations := make([]cel.ExpressionAccessor, len(p.Spec.Validations))
	messages := make([]cel.ExpressionAccessor, len(p.Spec.Validations))
	for i, v := range p.Spec.Validations {
		validations[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
		if v.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	annotations := make([]cel.ExpressionAccessor, len(p.Spec.AuditAnnotations))
	for i, a := range p.Spec.AuditAnnotations {
		annotations[i] = &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression}
	}
	step := Step{Phase: lint.ValidatingPolicies, Name: p.Name + "/" + b.Name}
	watched := &watchedValidator{evaluation: e, step: step, fail: *p.Spec.FailurePolicy, actions: b.Spec.ValidationActions}
	for _, v := range p.Spec.Validations {
		watched.reads = append(watched.reads, c.Reads(v.Expression))
		watched.messages = append(watched.messages, c.Reads(v.MessageExpression))
	}
	for _, a := range p.Spec.AuditAnnotations {
		watched.annotations = append(watched.annotations, c.Reads(a.ValueExpression)...)
	}
	var matcher matchconditions.Matcher
	if m := c.Matcher(p.Spec.MatchConditions, p.Spec.FailurePolicy, p.Name); m != nil {
		matcher = &watchedMatcher{Matcher: m, evaluation: e, step: step, fail: *p.Spec.FailurePolicy, validator: watched, reads: c.ReadsOf(p.Spec.MatchConditions)}
	}
	withoutRights := c.Options
	withoutRights.HasAuthorizer = false
	watched.Validator = validating.NewValidator(c.Conditions(validations, c.Options), matcher, c.Conditions(annotations, c.Options), c.Conditions(messages, withoutRights), p.Spec.FailurePolicy, nil)
	return watched, errors.Join(c.Errs...)
}

// params returns the parameters of a kind. The error is the one that the API server has for a kind
// that it does not know.
func (e *evaluation) params(kind *admissionregistrationv1.ParamKind) (informers.GenericInformer, meta.RESTScope, error) {
	if kind == nil {
		return nil, nil, nil
	}
	gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
	resource := e.Resources.OfKind(gvk)
	if resource == nil {
		return nil, nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", gvk)
	}
	scope := meta.RESTScopeRoot
	if resource.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, o := range e.Objects {
		if o.GVK() != gvk {
			continue
		}
		namespace := ""
		if resource.Namespaced {
			namespace = cmp.Or(o.Namespace, corev1.NamespaceDefault)
		}
		param, err := e.kinds.decode(gvk, o.Raw, namespace)
		if err == nil {
			err = indexer.Add(param)
		}
		if err != nil {
			return nil, nil, o.ErrorAt("", err.Error())
		}
	}
	return params{indexer: indexer, resource: resource.GroupResource()}, scope, nil
}

// params implements [informers.GenericInformer] for objects that do not change.
type params struct {
	cache.SharedIndexInformer
	indexer  cache.Indexer
	resource schema.GroupResource
}

func (p params) Informer() cache.SharedIndexInformer { return p }
func (p params) Lister() cache.GenericLister         { return cache.NewGenericLister(p.indexer, p.resource) }
func (p params) HasSynced() bool                     { return true }

// paramName is the name of a parameter for people.
func paramName(param runtime.Object) string {
	accessor, err := meta.Accessor(param)
	if param == nil || err != nil {
		return ""
	}
	if accessor.GetNamespace() == "" {
		return accessor.GetName()
	}
	return accessor.GetNamespace() + "/" + accessor.GetName()
}

// failed returns the outcome of a failure.
func failed(fail admissionregistrationv1.FailurePolicyType) Outcome {
	if fail == admissionregistrationv1.Ignore {
		return Ignored
	}
	return Failed
}

// notePolicyOrder notes that the order of mutating policies decides. They are evaluated by name, but
// the API server has no order: k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go.
func (e *evaluation) notePolicyOrder(ctx context.Context, a apiserveradmission.Attributes, hooks []mutating.PolicyHook, dispatcher generic.Dispatcher[mutating.PolicyHook]) error {
	if len(hooks) < 2 || e.again || a.GetObject() == nil {
		return nil
	}
	e.trial = true
	defer func() { e.trial = false }()
	mutated := func(hooks []mutating.PolicyHook) (any, error) {
		trial := apiserveradmission.NewAttributesRecord(a.GetObject().DeepCopyObject(), a.GetOldObject(), a.GetKind(), a.GetNamespace(), a.GetName(), a.GetResource(), a.GetSubresource(),
			a.GetOperation(), a.GetOperationOptions(), false, a.GetUserInfo())
		refused := dispatcher.Dispatch(ctx, trial, e.kinds, hooks)
		if again := trial.GetReinvocationContext(); refused == nil && again.ShouldReinvoke() {
			again.SetIsReinvoke()
			refused = dispatcher.Dispatch(ctx, trial, e.kinds, hooks)
		}
		if refused != nil {
			return nil, nil //nolint:nilerr // the outcome is that there is no object
		}
		return content(trial.GetObject())
	}
	forward, err := mutated(hooks)
	if err != nil {
		return err
	}
	hooks = slices.Clone(hooks)
	slices.Reverse(hooks)
	backward, err := mutated(hooks)
	if err == nil && !reflect.DeepEqual(forward, backward) {
		e.result.Notes = append(e.result.Notes, "the result depends on the order of the mutating policies: they are evaluated by name here, and the API server evaluates them in any order")
	}
	return err
}
