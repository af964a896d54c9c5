// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"context"
	"errors"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/sallyport-io/sallyport/admission"
)

// matchConditions is the type of Case.MatchConditions.
type matchConditions = func(ctx context.Context, webhook admission.Webhook, request *admissionv1.AdmissionRequest) (why string, err error)

// checkMatchConditions returns what is wrong with the match conditions of a webhook.
func checkMatchConditions(ctx context.Context, webhook admission.Webhook, conditions matchConditions) error {
	if len(webhook.MatchConditions) == 0 {
		return nil
	}
	if conditions == nil {
		return errors.New("the webhook has match conditions, and the case cannot evaluate them: set Case.MatchConditions to " +
			"matchconditions.Evaluate of github.com/sallyport-io/sallyport/sallyporttest/matchconditions")
	}
	_, err := conditions(ctx, webhook, nil)
	return err
}

// uncalled returns why the API server does not call a webhook for a request that its rules
// match, or empty if it does. An error means that the API server denies the request.
//
// See "Matching requests" in Kubernetes' documentation of dynamic admission control.
func uncalled(ctx context.Context, webhook admission.Webhook, request *admissionv1.AdmissionRequest, namespaceLabels map[string]string, conditions matchConditions) (why string, err error) {
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
	return conditions(ctx, webhook, request)
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
