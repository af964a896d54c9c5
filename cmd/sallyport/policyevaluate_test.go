// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/util/version"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/export"
)

var (
	podKind     = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// policies are exported policies. They are compiled and evaluated with the API server's own
// code, at the oldest version that has them, in the order of its dispatcher.
type policies struct {
	mutating, validating map[string]*evaluator // by namespace
	interfaces           apiserveradmission.ObjectInterfaces
}

type evaluator struct {
	compiler  *cel.CompositedCompiler
	matcher   matchconditions.Matcher
	patchers  []patch.Patcher
	validator validating.Validator
}

// compilePolicies compiles policies. The API server calls defaulting after each mutation.
func compilePolicies(exported *export.Exported, defaulting func(*corev1.Pod)) (*policies, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	scheme.AddTypeDefaultingFunc(&corev1.Pod{}, func(o any) { defaulting(o.(*corev1.Pod)) })
	p := &policies{map[string]*evaluator{}, map[string]*evaluator{}, apiserveradmission.NewObjectInterfacesFromScheme(scheme)}
	for _, o := range exported.Objects {
		switch o := o.(type) {
		case *admissionregistrationv1.MutatingAdmissionPolicy:
			e, err := newEvaluator(o.Name, o.Spec.Variables, o.Spec.MatchConditions)
			if err != nil {
				return nil, err
			}
			for _, m := range o.Spec.Mutations {
				compiled := e.compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression},
					cel.OptionalVariableDeclarations{HasAuthorizer: true, HasPatchTypes: true}, environment.NewExpressions)
				if errs := compiled.CompilationErrors(); len(errs) > 0 {
					return nil, fmt.Errorf("%v\n%s", errs, m.JSONPatch.Expression)
				}
				e.patchers = append(e.patchers, patch.NewJSONPatcher(compiled))
			}
			p.mutating[strings.TrimPrefix(o.Name, export.NamePrefix)] = e
		case *admissionregistrationv1.ValidatingAdmissionPolicy:
			e, err := newEvaluator(o.Name, o.Spec.Variables, nil)
			if err != nil {
				return nil, err
			}
			options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
			var validations, messages []cel.ExpressionAccessor
			for _, v := range o.Spec.Validations {
				validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
				messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
			}
			compile := func(expressions []cel.ExpressionAccessor, o cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
				return e.compiler.CompileCondition(expressions, o, environment.NewExpressions)
			}
			var conditions []cel.ExpressionAccessor
			for i := range o.Spec.MatchConditions {
				conditions = append(conditions, (*matchconditions.MatchCondition)(&o.Spec.MatchConditions[i]))
			}
			e.validator = validating.NewValidator(compile(validations, options),
				matchconditions.NewMatcher(compile(conditions, options), o.Spec.FailurePolicy, "policy", "validate", o.Name),
				compile(nil, options), compile(messages, cel.OptionalVariableDeclarations{}), o.Spec.FailurePolicy, nil)
			p.validating[strings.TrimPrefix(o.Name, export.NamePrefix)] = e
		}
	}
	return p, nil
}

func newEvaluator(name string, variables []admissionregistrationv1.Variable, conditions []admissionregistrationv1.MatchCondition) (*evaluator, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(apiversion.MajorMinor(1, 36)))
	if err != nil {
		return nil, err
	}
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range variables {
		if result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, options, environment.NewExpressions); result.Error != nil {
			return nil, fmt.Errorf("variable %s: %w\n%s", v.Name, result.Error, v.Expression)
		}
	}
	var accessors []cel.ExpressionAccessor
	for i := range conditions {
		accessors = append(accessors, (*matchconditions.MatchCondition)(&conditions[i]))
	}
	fail := admissionregistrationv1.Fail
	return &evaluator{
		compiler: compiler,
		matcher:  matchconditions.NewMatcher(compiler.CompileCondition(accessors, options, environment.NewExpressions), &fail, "policy", "validate", name),
	}, nil
}

// mutate runs the mutating policy once.
func (p *policies) mutate(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	e := p.mutating[pod.Namespace]
	if e == nil {
		return pod, nil
	}
	versioned := policyAttributes(pod)
	ctx = e.compiler.CreateContext(ctx)
	matched := e.matcher.Match(ctx, versioned, nil, nil)
	if matched.Error != nil {
		return nil, matched.Error
	}
	if !matched.Matches {
		return pod, nil
	}
	for _, patcher := range e.patchers {
		patched, err := patcher.Patch(ctx, patch.Request{
			MatchedResource: podResource, VersionedAttributes: versioned, ObjectInterfaces: p.interfaces,
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return nil, err
		}
		p.interfaces.GetObjectDefaulter().Default(patched)
		versioned.UpdateObject(patched)
	}
	return versioned.VersionedObject.Object().(*corev1.Pod), nil
}

// refusal returns the validating policy's message for a finished pod; empty if it admits the
// pod.
func (p *policies) refusal(ctx context.Context, pod *corev1.Pod) (string, error) {
	e := p.validating[pod.Namespace]
	if e == nil {
		return "", nil
	}
	result := e.validator.Validate(ctx, podResource, policyAttributes(pod), nil, nil, celconfig.RuntimeCELCostBudget, nil)
	var messages []string
	for _, decision := range result.Decisions {
		if decision.Evaluation == validating.EvalError {
			return "", fmt.Errorf("the policy failed: %s", decision.Message)
		}
		if decision.Action == validating.ActionDeny {
			messages = append(messages, decision.Message)
		}
	}
	return strings.Join(messages, "\n"), nil
}

func policyAttributes(pod *corev1.Pod) *apiserveradmission.VersionedAttributes {
	attributes := apiserveradmission.NewAttributesRecord(pod, nil, podKind, pod.Namespace, pod.Name, podResource, "", apiserveradmission.Create, nil, false, nil)
	return &apiserveradmission.VersionedAttributes{
		Attributes: attributes, VersionedKind: podKind,
		VersionedObject: apiserveradmission.NewLazyObject(pod), VersionedOldObject: apiserveradmission.NewLazyObject(nil),
	}
}

// asPod decodes and defaults a pod, as the API server does with a webhook's result.
func asPod(raw []byte) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return nil, err
	}
	defaultPod(pod)
	return pod, nil
}

// defaultPod sets the API server's defaults for the fields that the generators draw.
func defaultPod(pod *corev1.Pod) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.VolumeSource == (corev1.VolumeSource{}) {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		if v.Secret != nil && v.Secret.DefaultMode == nil {
			v.Secret.DefaultMode = new(int32(420))
		}
		if v.ConfigMap != nil && v.ConfigMap.DefaultMode == nil {
			v.ConfigMap.DefaultMode = new(int32(420))
		}
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			c := &containers[i]
			if c.TerminationMessagePath == "" {
				c.TerminationMessagePath = "/dev/termination-log"
			}
			if c.ImagePullPolicy == "" {
				c.ImagePullPolicy = corev1.PullAlways
			}
			for _, env := range c.Env {
				if env.ValueFrom != nil && env.ValueFrom.FieldRef != nil && env.ValueFrom.FieldRef.APIVersion == "" {
					env.ValueFrom.FieldRef.APIVersion = "v1"
				}
			}
			for j := range c.Ports {
				if c.Ports[j].Protocol == "" {
					c.Ports[j].Protocol = corev1.ProtocolTCP
				}
			}
			for name, limit := range c.Resources.Limits {
				if _, ok := c.Resources.Requests[name]; !ok {
					if c.Resources.Requests == nil {
						c.Resources.Requests = corev1.ResourceList{}
					}
					c.Resources.Requests[name] = limit
				}
			}
		}
	}
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if pod.Spec.SecurityContext == nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	}
}
