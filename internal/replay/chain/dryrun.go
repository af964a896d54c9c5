// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// ask lets the API server decide on a request whose result is not known. What it says is true of a request
// that is no dry run only if no policy reads whether it is one, nor a field manager that is not known.
func (r *Run) ask(ctx context.Context, result *Result) error {
	if reason := r.inDryRun(result); reason != "" {
		result.Notes = append(result.Notes, "the API server is not asked: "+reason)
		return nil
	}
	object, err := r.DryRun(ctx, r.Request)
	var status *apierrors.StatusError
	if err != nil && (!errors.As(err, &status) || unanswered(err)) {
		result.Unknown = append(result.Unknown, "the API server's own answer to a dry run: "+err.Error())
		return nil
	}
	result.Notes = append(result.Notes, "decided by the API server's own dry run, because here is not known: "+strings.Join(result.Unknown, "; "))
	result.Unknown = nil
	if err != nil {
		result.Denied = &status.ErrStatus
		return nil
	}
	result.Denied = nil
	if object != nil {
		before := map[string]any{}
		if err := utiljson.Unmarshal(r.Request.Object.Raw, &before); err != nil {
			return err
		}
		result.Object = object
		result.Changes, err = changes(before, object, nil)
		return err
	}
	return nil
}

// unanswered reports whether an error says that the user may not ask, or that something is in the way of
// asking, rather than what the answer is.
func unanswered(err error) bool {
	text := err.Error()
	return apierrors.IsUnauthorized(err) || apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && !strings.Contains(text, "namespaces ") ||
		apierrors.IsForbidden(err) && strings.Contains(text, "cannot ") && strings.Contains(text, "User ") ||
		strings.Contains(text, "does not support dry run")
}

// dryRunner sends requests to an API server, as its user or as the one of the request.
func dryRunner(config *rest.Config, impersonate bool, manager string) func(context.Context, *admissionv1.AdmissionRequest) (map[string]any, error) {
	return func(ctx context.Context, req *admissionv1.AdmissionRequest) (map[string]any, error) {
		as := rest.CopyConfig(config)
		if impersonate {
			as.Impersonate = rest.ImpersonationConfig{UserName: req.UserInfo.Username, Groups: req.UserInfo.Groups}
		}
		client, err := dynamic.NewForConfig(as)
		if err != nil {
			return nil, err
		}
		resource := client.Resource(schema.GroupVersionResource(req.Resource)).Namespace(req.Namespace)
		if req.Resource.Group == "" && req.Resource.Resource == "namespaces" {
			resource = client.Resource(schema.GroupVersionResource(req.Resource)).Namespace("")
		}
		var object *unstructured.Unstructured
		if len(req.Object.Raw) > 0 {
			object = &unstructured.Unstructured{}
			if err := utiljson.Unmarshal(req.Object.Raw, &object.Object); err != nil {
				return nil, err
			}
			object.SetGroupVersionKind(schema.GroupVersionKind(req.Kind))
		}
		var sub []string
		if req.SubResource != "" {
			sub = []string{req.SubResource}
		}
		all := []string{metav1.DryRunAll}
		var out *unstructured.Unstructured
		switch req.Operation {
		case admissionv1.Create:
			if req.SubResource != "" {
				return nil, fmt.Errorf("it is not asked about creations of %s/%s", req.Resource.Resource, req.SubResource)
			}
			object.SetResourceVersion("")
			out, err = resource.Create(ctx, object, metav1.CreateOptions{DryRun: all, FieldManager: manager})
		case admissionv1.Update:
			out, err = resource.Update(ctx, object, metav1.UpdateOptions{DryRun: all, FieldManager: manager}, sub...)
		case admissionv1.Delete:
			return nil, resource.Delete(ctx, req.Name, metav1.DeleteOptions{DryRun: all})
		default:
			return nil, fmt.Errorf("it has no dry run of %s", req.Operation)
		}
		if err != nil {
			return nil, err
		}
		return out.Object, nil
	}
}
