// SPDX-License-Identifier: Apache-2.0

// Package servicetype rejects Services that bypass a cluster's ingress: load balancers,
// node ports, external names, external IPs; with exceptions by namespace, label or load
// balancer class. Existing Services may keep what they have.
package servicetype

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// Identifiers of the webhook in the API.
const (
	Name = "servicetype.sallyport.io"
	Path = "/validate-servicetype"
)

// New defines the webhook. The error reports all problems of the settings.
func New(settings Settings) ([]admission.Webhook, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	namespaced := admissionregistrationv1.NamespacedScope
	return []admission.Webhook{{
		Name: Name,
		Path: Path,
		Type: admission.TypeValidating,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}, Scope: &namespaced,
			},
		}},
		MatchConditions: conditions(settings),
		Handler:         handler{settings},
	}}, nil
}

// conditions exclude requests that the handler would allow anyway: most Services.
func conditions(settings Settings) []admissionregistrationv1.MatchCondition {
	var types, terms []string
	for _, feature := range settings.Forbidden {
		if feature == ExternalIPs {
			terms = append(terms, "has(object.spec.externalIPs) && object.spec.externalIPs.size() > 0")
			continue
		}
		types = append(types, "'"+string(feature)+"'")
	}
	if len(types) > 0 {
		terms = append([]string{"has(object.spec.type) && object.spec.type in [" + strings.Join(types, ", ") + "]"}, terms...)
	}
	return []admissionregistrationv1.MatchCondition{{Name: "may-be-forbidden", Expression: "(" + strings.Join(terms, ") || (") + ")"}}
}

type handler struct{ settings Settings }

var serviceResource = metav1.GroupVersionResource{Version: "v1", Resource: "services"}

// Handle implements [admission.Handler].
func (h handler) Handle(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if req.Resource != serviceResource {
		return admission.BadRequest("the request is for %s; this webhook is for services of version v1: correct the rules of its configuration",
			req.Resource.String()), nil
	}
	// Subresources cannot change a Service's spec.
	if req.SubResource != "" || !slices.Contains([]admissionv1.Operation{admissionv1.Create, admissionv1.Update}, req.Operation) {
		return admission.Allowed(), nil
	}
	if len(req.Object.Raw) == 0 {
		return admission.BadRequest("the request has no object; expected a service"), nil
	}
	now, ok := readService(req.Object.Raw)
	if !ok {
		return admission.BadRequest("not a service: metadata, spec or externalIPs are missing or invalid"), nil
	}
	var before *service
	if req.Operation == admissionv1.Update {
		old, ok := readService(req.OldObject.Raw)
		if !ok {
			return admission.BadRequest("the request's old object is not a service"), nil
		}
		before = &old
	}
	violations := h.settings.violations(req.Namespace, &now, before)
	if len(violations) == 0 {
		return admission.Allowed(), nil
	}
	return admission.DeniedResponse(fmt.Sprintf("service %s/%s: %s", req.Namespace, now.name(), strings.Join(violations, "; "))), nil
}
