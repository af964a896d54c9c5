// SPDX-License-Identifier: Apache-2.0

// Package dryrun asks an API server what it does with a request, by a dry run with the user's rights.
// Nothing is stored.
package dryrun

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// A Verdict is what an API server says of a request.
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted"
	Refused  Verdict = "refused"
	// Unknown means that the API server did not decide: the dry run is not possible, or the user has no right to it.
	Unknown Verdict = "unknown"
)

// An Answer is the answer of an API server.
type Answer struct {
	Verdict Verdict
	// Status is the answer of a refused request. Its message may end with origins of what is refused; Said does not.
	Status *metav1.Status
	Said   string
	// Object is what would be stored; nil if that is not known, or nothing would be.
	Object map[string]any
	// Reason says why the answer is unknown.
	Reason string
	// NoRight is set if it is unknown because the user may not send the request.
	NoRight bool
	// NoNamespace is set if the namespace does not exist.
	NoNamespace bool
}

func unknown(format string, args ...any) *Answer {
	return &Answer{Verdict: Unknown, Reason: fmt.Sprintf(format, args...)}
}

// A Server is an API server.
type Server struct {
	// FieldManager is that of requests; empty for the one of the client.
	FieldManager string

	client dynamic.Interface
}

// New returns the API server of a config. If user is not nil, requests are sent as this user, by impersonation.
func New(config *rest.Config, user *authenticationv1.UserInfo) (*Server, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	if user != nil {
		config.Impersonate = rest.ImpersonationConfig{UserName: user.Username, Groups: user.Groups}
	}
	client, err := dynamic.NewForConfig(config)
	return &Server{client: client}, err
}

// Asked reports whether a request has a dry run that this package sends.
func Asked(req *admissionv1.AdmissionRequest) bool {
	switch req.Operation {
	case admissionv1.Create:
		return req.SubResource == ""
	case admissionv1.Update, admissionv1.Delete:
		return true
	}
	return false
}

// Ask sends a request as a dry run. An error means that the context has ended, or that the object of the request is
// not one.
func (s *Server) Ask(ctx context.Context, req *admissionv1.AdmissionRequest) (*Answer, error) {
	if !Asked(req) {
		return unknown("it is not asked about %s of %s", req.Operation, strings.TrimSuffix(req.Resource.Resource+"/"+req.SubResource, "/")), nil
	}
	resource := s.resource(req)
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
	var err error
	switch req.Operation {
	case admissionv1.Create:
		object.SetResourceVersion("")
		out, err = resource.Create(ctx, object, metav1.CreateOptions{DryRun: all, FieldManager: s.FieldManager})
	case admissionv1.Update:
		out, err = resource.Update(ctx, object, metav1.UpdateOptions{DryRun: all, FieldManager: s.FieldManager}, sub...)
	default:
		err = resource.Delete(ctx, req.Name, metav1.DeleteOptions{DryRun: all}, sub...)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	answer := Judge(err, req.Operation)
	if err == nil && out != nil {
		answer.Object = out.Object
	}
	return answer, nil
}

// resource returns the client for the resource of a request.
func (s *Server) resource(req *admissionv1.AdmissionRequest) dynamic.ResourceInterface {
	namespace := req.Namespace
	if req.Resource.Group == "" && req.Resource.Resource == "namespaces" {
		namespace = "" // a request about a namespace has its name there
	}
	return s.client.Resource(schema.GroupVersionResource(req.Resource)).Namespace(namespace)
}

// Judge reads the answer from the error of a dry run.
func Judge(err error, operation admissionv1.Operation) *Answer {
	var status *apierrors.StatusError
	switch {
	case err == nil:
		return &Answer{Verdict: Accepted}
	case !errors.As(err, &status):
		return unknown("%v", err)
	case apierrors.IsAlreadyExists(err) && operation == admissionv1.Create:
		// The storage says so, after all of admission and validation (k8s.io/apiserver's registry.Store).
		return &Answer{Verdict: Accepted}
	case forbiddenByRights(err):
		return &Answer{Verdict: Unknown, NoRight: true, Reason: err.Error()}
	case strings.Contains(err.Error(), "does not support dry run"):
		return unknown("a webhook with side effects forbids the dry run: %v", err)
	case apierrors.IsUnauthorized(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsNotFound(err) && !noNamespace(err):
		return unknown("%v", err)
	}
	return &Answer{Verdict: Refused, Status: &status.ErrStatus, Said: status.ErrStatus.Message, NoNamespace: noNamespace(err)}
}

// forbiddenByRights reports whether an authorizer has forbidden a request, and not an admission plugin.
func forbiddenByRights(err error) bool {
	text := err.Error()
	return apierrors.IsForbidden(err) && strings.Contains(text, `User "`) && strings.Contains(text, `" cannot `)
}

func noNamespace(err error) bool {
	return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces ")
}
