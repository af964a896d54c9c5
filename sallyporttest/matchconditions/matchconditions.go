// SPDX-License-Identifier: Apache-2.0

// Package matchconditions evaluates the match conditions of webhooks in tests, with the API server's own
// packages. It is a module of its own, so that only who tests match conditions depends on them:
//
//	go get github.com/sallyport-io/sallyport/sallyporttest/matchconditions
//
//	sallyporttest.RunWebhook(t, webhook, sallyporttest.Case{
//		Review:          sallyporttest.Create(pod),
//		MatchConditions: matchconditions.Evaluate,
//	})
//
// Experimental: see docs/compatibility.md.
package matchconditions

import (
	"context"
	"errors"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	apiserver "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/sallyport-io/sallyport/admission"
)

// rights is the authorizer: system:masters may do everything, all other users nothing.
var rights = authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)

// compiler is the API server's. Creating it takes tens of milliseconds.
var compiler = sync.OnceValue(func() cel.ConditionCompiler {
	return cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// compile compiles the match conditions of a webhook.
func compile(webhook admission.Webhook) cel.ConditionEvaluator {
	var expressions []cel.ExpressionAccessor
	for _, condition := range webhook.MatchConditions {
		expressions = append(expressions, (*matchconditions.MatchCondition)(&condition))
	}
	return compiler().CompileCondition(expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
}

// Evaluate is for the field MatchConditions of a sallyporttest.Case. Conditions that use the authorizer find
// that system:masters, the group of the default user of reviews, may do everything, and other users nothing.
func Evaluate(ctx context.Context, webhook admission.Webhook, request *admissionv1.AdmissionRequest) (why string, err error) {
	compiled := compile(webhook)
	if err := errors.Join(compiled.CompilationErrors()...); err != nil {
		return "", fmt.Errorf("a match condition does not compile, so the API server refuses the webhook: %w", err)
	}
	if request == nil {
		return "", nil
	}
	object, err := tree(request.Object.Raw)
	if err != nil {
		return "", fmt.Errorf("the object of the review: %w", err)
	}
	old, err := tree(request.OldObject.Raw)
	if err != nil {
		return "", fmt.Errorf("the old object of the review: %w", err)
	}
	attributes := apiserver.NewAttributesRecord(object, old, schema.GroupVersionKind(request.Kind), request.Namespace, request.Name,
		schema.GroupVersionResource(request.Resource), request.SubResource, apiserver.Operation(request.Operation), nil, true, userOf(request))
	// The objects have this version already, so that nothing is converted.
	versioned, err := apiserver.NewVersionedAttributes(attributes, attributes.GetKind(), apiserver.NewObjectInterfacesFromScheme(runtime.NewScheme()))
	if err != nil {
		return "", err
	}
	matcher := matchconditions.NewMatcher(compiled, &webhook.FailurePolicy, "webhook", string(webhook.Type), webhook.Name)
	switch result := matcher.Match(ctx, versioned, nil, rights); {
	case result.Error != nil:
		return "", fmt.Errorf("a match condition of the webhook cannot be evaluated, so the API server denies the request: %w", result.Error)
	case !result.Matches && result.FailedConditionName == "":
		return "a match condition cannot be evaluated, and the failure policy is Ignore", nil
	case !result.Matches:
		return fmt.Sprintf("match condition %q is false", result.FailedConditionName), nil
	}
	return "", nil
}

// tree returns nil, the interface, for no object.
func tree(raw []byte) (runtime.Object, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	return object, json.Unmarshal(raw, &object.Object)
}

func userOf(request *admissionv1.AdmissionRequest) user.Info {
	info := &user.DefaultInfo{Name: request.UserInfo.Username, UID: request.UserInfo.UID, Groups: request.UserInfo.Groups, Extra: map[string][]string{}}
	for key, values := range request.UserInfo.Extra {
		info.Extra[key] = values
	}
	return info
}
