// SPDX-License-Identifier: Apache-2.0

// Package author validates PodDefaults and ClusterPodDefaults and authorizes their
// authors, the writers of their revisions, and those who exempt pods from them: see [NewExempt].
//
// What a PodDefault adds runs in other people's pods. An author who creates a
// PodDefault or changes its spec must therefore be allowed to create pods: in its
// namespace, or in all namespaces for a ClusterPodDefault. RBAC has no finer verb for a
// pod's ServiceAccount or Secrets, because anyone who may create pods may use all of
// the namespace's. PodSecurity, quotas and other policies still check the injected pod
// when it is created. Deletions and changes of only metadata or status need no check.
package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Identifiers of the webhook in the API.
const (
	Name = "author.poddefault.sallyport.io"
	Path = "/validate-poddefault"
)

// Authorizer reports whether a user has access to a resource. Reason is the API server's
// explanation and may be empty. An error is a fault: the object is neither admitted nor
// denied. Wrap it with [admission.Unavailable] if a retry may succeed.
type Authorizer interface {
	May(ctx context.Context, user *authenticationv1.UserInfo, access *authorizationv1.ResourceAttributes) (allowed bool, reason string, err error)
}

// Neighbours are the objects beside the one that is written, and what their reader lacks.
type Neighbours interface {
	// Neighbours returns the objects that apply to pods of a namespace, and the
	// ClusterPodDefaults for the empty namespace.
	Neighbours(namespace string) []*plan.Plan
	// Trouble returns the right to read such objects that has been lost, or nil.
	Trouble() error
	// Connections returns why pods do not get Secrets that objects select by labels, or nil.
	Connections() error
}

func selectsSecrets(spec []byte) bool {
	return slices.ContainsFunc([]string{"envFromSecretSelector", "volumesFromSecretSelector"}, func(field string) bool {
		selector, ok := rawjson.Lookup(spec, field)
		return ok && selector.Kind() == '{'
	})
}

// New defines the webhook. With [Enforce] it fails closed, otherwise open: injection
// finds a broken object again, but not a missing right. If neighbours is not nil,
// authors are warned of conflicts with other objects.
func New(authorizer Authorizer, neighbours Neighbours, mode Mode) (admission.Webhook, error) {
	err := mode.Validate()
	if authorizer == nil && mode != Off {
		err = errors.Join(err, errors.New("author: the authorizer for the creation of pods is missing"))
	}
	if err != nil {
		return admission.Webhook{}, err
	}
	return admission.Webhook{
		Name: Name, Path: Path, Type: admission.TypeValidating,
		Rules: []admissionregistrationv1.RuleWithOperations{
			rule(podDefaults, admissionregistrationv1.NamespacedScope),
			rule(clusterPodDefaults, admissionregistrationv1.ClusterScope),
			rule(podDefaultRevisions, admissionregistrationv1.NamespacedScope),
			rule(clusterPodDefaultRevisions, admissionregistrationv1.ClusterScope),
		},
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "spec-changes",
			Expression: "request.operation == 'CREATE' || request.resource.resource.endsWith('revisions') || has(object.spec) != has(oldObject.spec) || " +
				"has(object.spec) && object.spec != oldObject.spec",
		}},
		FailurePolicy: mode.FailurePolicy(),
		Handler:       &handler{authorizer: authorizer, neighbours: neighbours, mode: mode},
	}, nil
}

func rule(resource schema.GroupVersionResource, scope admissionregistrationv1.ScopeType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version}, Resources: []string{resource.Resource}, Scope: &scope,
		},
	}
}

var (
	podDefaults        = kubeflowv1alpha1.Resource(kubeflowv1alpha1.PodDefaultResource)
	clusterPodDefaults = sallyportv1alpha1.Resource(sallyportv1alpha1.ClusterPodDefaultResource)
)

type handler struct {
	authorizer Authorizer
	neighbours Neighbours
	mode       Mode
}

// Handle implements [admission.Handler].
func (h *handler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	resource := schema.GroupVersionResource(req.Resource)
	ofRevisions := resource == podDefaultRevisions || resource == clusterPodDefaultRevisions
	if resource != podDefaults && resource != clusterPodDefaults && !ofRevisions {
		return admission.BadRequest("the request is for %s; this webhook is for %s, %s and their revisions: correct the rules of its configuration",
			req.Resource.String(), podDefaults.GroupResource(), clusterPodDefaults.GroupResource()), nil
	}
	if req.SubResource != "" || req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return admission.Allowed(), nil
	}
	if jsontext.Value(req.Object.Raw).Kind() != '{' {
		return admission.BadRequest("the request's object is not a %s", req.Kind.Kind), nil
	}
	if ofRevisions {
		return h.revision(ctx, req)
	}
	spec, _ := rawjson.Lookup(req.Object.Raw, "spec")
	old, _ := rawjson.Lookup(req.OldObject.Raw, "spec")
	if req.Operation == admissionv1.Update && bytes.Equal(spec, old) {
		return admission.Allowed(), nil
	}
	resp := admission.Allowed()
	if h.mode != Off {
		var err error
		if resp, err = h.enforce(ctx, req, "it adds to pods"); err != nil || !resp.Allowed {
			return resp, err
		}
	}
	return h.check(ctx, req, spec, old, resp), nil
}

// enforce denies a request whose author may not create pods, or warns, as the mode says.
func (h *handler) enforce(ctx context.Context, req *admissionv1.AdmissionRequest, why string) (*admission.Response, error) {
	denial, err := h.mayCreatePods(ctx, req, why)
	switch {
	case err != nil:
		return nil, err
	case denial == "":
		return admission.Allowed(), nil
	case h.mode == Enforce:
		return admission.DeniedResponse(denial), nil
	}
	return admission.Allowed().Warn(denial), nil
}

// check answers according to the spec. Problems that the object already had are only
// warnings. Otherwise objects older than this webhook could not be fixed step by step.
func (h *handler) check(ctx context.Context, req *admissionv1.AdmissionRequest, spec, old []byte, resp *admission.Response) *admission.Response {
	decoded, err := decode(ofCluster(req), spec)
	if err != nil {
		return admission.BadRequest("%s: spec: %s", title(req), unreadable(err))
	}
	errs, warnings := judge(ofCluster(req), decoded, spec)
	if req.Operation == admissionv1.Update {
		if former, err := decode(ofCluster(req), old); err == nil {
			before, _ := judge(ofCluster(req), former, old)
			errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
				known := slices.ContainsFunc(before, func(b *field.Error) bool { return b.Error() == e.Error() })
				if known {
					warnings = append(warnings, "as before: "+e.Error())
				}
				return known
			})
		}
	}
	if h.neighbours != nil {
		if err := h.neighbours.Trouble(); err != nil {
			resp.Warn("it has no effect on pods for now, because the server may no longer read such objects, see 'sallyport doctor': " + err.Error())
		}
		if err := h.neighbours.Connections(); err != nil && selectsSecrets(spec) {
			resp.Warn("it is left out: " + err.Error())
		}
	}
	resp.Warn(warnings...)
	if len(errs) == 0 {
		return resp.Warn(h.disagreements(ctx, req, decoded)...)
	}
	denied := admission.StatusResponse(apierrors.NewInvalid(schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}, req.Name, errs).ErrStatus)
	return denied.Warn(resp.Warnings...)
}

// unreadable says which field of a spec has the wrong type, without its value.
func unreadable(err error) string {
	var wrongType *json.SemanticError
	if errors.As(err, &wrongType) {
		return fmt.Sprintf("%s is of another type than it should be", wrongType.JSONPointer)
	}
	return "it cannot be read"
}

func title(req *admissionv1.AdmissionRequest) string {
	name := req.Name
	if name == "" { // the API server will generate one
		var object metav1.PartialObjectMetadata
		if json.Unmarshal(req.Object.Raw, &object) == nil {
			name = object.GenerateName + "*"
		}
	}
	if req.Namespace != "" {
		name = req.Namespace + "/" + name
	}
	return req.Kind.Kind + " " + name
}
