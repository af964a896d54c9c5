// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
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

// rights is the authorizer for match conditions: system:masters may do everything, all
// other users nothing.
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

// uncompiled returns why match conditions do not compile. The API server refuses such a webhook.
func uncompiled(webhook admission.Webhook) error {
	if len(webhook.MatchConditions) == 0 {
		return nil
	}
	return errors.Join(compile(webhook).CompilationErrors()...)
}

// uncalled returns why the API server does not call a webhook for a request that its rules
// match, or empty if it does. An error means that the API server denies the request.
//
// See "Matching requests" in Kubernetes' documentation of dynamic admission control.
func uncalled(ctx context.Context, webhook admission.Webhook, request *admissionv1.AdmissionRequest, namespaceLabels map[string]string) (why string, err error) {
	object, err := tree(request.Object.Raw)
	if err != nil {
		return "", fmt.Errorf("the object of the review: %w", err)
	}
	old, err := tree(request.OldObject.Raw)
	if err != nil {
		return "", fmt.Errorf("the old object of the review: %w", err)
	}
	if why, err := unselected(webhook, request, object, old, namespaceLabels); why != "" || err != nil {
		return why, err
	}
	if len(webhook.MatchConditions) == 0 {
		return "", nil
	}
	attributes := apiserver.NewAttributesRecord(orNil(object), orNil(old), schema.GroupVersionKind(request.Kind), request.Namespace, request.Name,
		schema.GroupVersionResource(request.Resource), request.SubResource, apiserver.Operation(request.Operation), nil, true, userOf(request))
	versioned := &apiserver.VersionedAttributes{Attributes: attributes, VersionedKind: attributes.GetKind()}
	if object != nil {
		versioned.VersionedObject = apiserver.NewLazyObject(object)
	}
	if old != nil {
		versioned.VersionedOldObject = apiserver.NewLazyObject(old)
	}
	matcher := matchconditions.NewMatcher(compile(webhook), &webhook.FailurePolicy, "webhook", string(webhook.Type), webhook.Name)
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

// unselected returns which selector excludes the request. The object selector matches if it
// matches the object or the old object. Cluster-scoped objects match any namespace
// selector; a Namespace is matched by its own labels.
func unselected(webhook admission.Webhook, request *admissionv1.AdmissionRequest, object, old *unstructured.Unstructured, namespaceLabels map[string]string) (string, error) {
	byNamespace, err := selector(webhook.NamespaceSelector)
	if err != nil {
		return "", fmt.Errorf("namespaceSelector: %w", err)
	}
	byObject, err := selector(webhook.ObjectSelector)
	if err != nil {
		return "", fmt.Errorf("objectSelector: %w", err)
	}
	isNamespace := request.Resource.Group == "" && request.Resource.Resource == "namespaces"
	if request.Namespace != "" || isNamespace {
		is := labels.Set{corev1.LabelMetadataName: request.Namespace}
		if isNamespace {
			is = labels.Set{corev1.LabelMetadataName: request.Name}
			if object != nil {
				maps.Copy(is, object.GetLabels())
			} else if old != nil {
				maps.Copy(is, old.GetLabels())
			}
		}
		maps.Copy(is, namespaceLabels)
		if !byNamespace.Matches(is) {
			return fmt.Sprintf("namespaceSelector %q does not select a namespace with the labels %q (see sallyporttest.NamespaceLabels)", byNamespace, is), nil
		}
	}
	for _, candidate := range []*unstructured.Unstructured{object, old} {
		if candidate != nil && byObject.Matches(labels.Set(candidate.GetLabels())) {
			return "", nil
		}
	}
	if byObject.Empty() {
		return "", nil
	}
	return fmt.Sprintf("objectSelector %q selects neither the object nor the old one", byObject), nil
}

// selector returns the selector of a webhook; nil selects everything.
func selector(of *metav1.LabelSelector) (labels.Selector, error) {
	if of == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(of)
}

func tree(raw []byte) (*unstructured.Unstructured, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	return object, json.Unmarshal(raw, &object.Object)
}

func orNil(object *unstructured.Unstructured) runtime.Object {
	if object == nil {
		return nil
	}
	return object
}

func userOf(request *admissionv1.AdmissionRequest) user.Info {
	info := &user.DefaultInfo{Name: request.UserInfo.Username, UID: request.UserInfo.UID, Groups: request.UserInfo.Groups, Extra: map[string][]string{}}
	for key, values := range request.UserInfo.Extra {
		info.Extra[key] = values
	}
	return info
}
