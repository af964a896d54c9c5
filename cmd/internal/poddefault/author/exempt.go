// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// Identifiers of the webhook for exemptions in the API.
const (
	ExemptName = "exempt.poddefault.sallyport.io"
	ExemptPath = "/validate-poddefault/exempt"
)

var exemptions = sallyportv1alpha1.Resource(sallyportv1alpha1.ExemptionResource)

// NewExempt defines the webhook for Exemptions. It refuses those that are new or wider than
// before if they have ended, end later than maxExemption from now, or if the user may not
// exempt from their objects. It fails closed. [exempt.Policy] asks for the same rights while
// no server answers.
func NewExempt(authorizer Authorizer, maxExemption time.Duration) (admission.Webhook, error) {
	if authorizer == nil {
		return admission.Webhook{}, errors.New("author: the authorizer for exemptions from PodDefaults is missing")
	}
	return admission.Webhook{
		Name: ExemptName, Path: ExemptPath, Type: admission.TypeValidating,
		Rules: []admissionregistrationv1.RuleWithOperations{rule(exemptions, admissionregistrationv1.NamespacedScope)},
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "spec-changes", Expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
		}},
		FailurePolicy: admissionregistrationv1.Fail,
		Handler:       &exemptHandler{authorizer: authorizer, maxDuration: maxExemption, now: time.Now},
	}, nil
}

type exemptHandler struct {
	authorizer  Authorizer
	maxDuration time.Duration
	now         func() time.Time
}

// Handle implements [admission.Handler].
func (h *exemptHandler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if resource := schema.GroupVersionResource(req.Resource); resource != exemptions {
		return admission.BadRequest("the request is for %s; this webhook is for %s: correct the rules of its configuration", req.Resource.String(), exemptions.GroupResource()), nil
	}
	if req.SubResource != "" || req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return admission.Allowed(), nil
	}
	var object, old sallyportv1alpha1.Exemption
	if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
		return admission.BadRequest("%s: %s", title(req), unreadable(err)), nil
	}
	e, err := exempt.New(&object)
	e.Namespace = req.Namespace
	if err != nil {
		return admission.DeniedResponse(fmt.Sprintf("%s: %s", title(req), strings.ReplaceAll(err.Error(), "\n", "; "))), nil
	}
	var before *exempt.Exemption // nil if it exempts from nothing
	if req.Operation == admissionv1.Update && json.Unmarshal(req.OldObject.Raw, &old) == nil {
		if known, err := exempt.New(&old); err == nil {
			before = known
		}
	}
	wider := e.Wider(before)
	if problem := h.limits(e); problem != "" && len(wider) > 0 {
		return admission.DeniedResponse(fmt.Sprintf("%s: spec.until: it %s", title(req), problem)), nil
	}
	for _, name := range slices.Sorted(slices.Values(wider)) {
		access := exemptAccess(req.Namespace, name)
		allowed, reason, err := h.authorizer.May(ctx, &req.UserInfo, access)
		if err != nil {
			return nil, err
		}
		if !allowed {
			return admission.DeniedResponse(refusal(req.UserInfo.Username, access, reason)), nil
		}
	}
	return admission.Allowed(), nil
}

// limits returns what is wrong with when an exemption ends, or "".
func (h *exemptHandler) limits(e *exempt.Exemption) string {
	switch left := e.Until.Sub(h.now()); {
	case left <= 0:
		return "has passed: give a time in the future"
	case left > h.maxDuration:
		return "is more than " + h.maxDuration.String() + " from now, which is the server's maxExemption: give an earlier time"
	}
	return ""
}

// exemptAccess is what exempting the pods of a namespace from an object requires.
func exemptAccess(namespace, name string) *authorizationv1.ResourceAttributes {
	resource := podDefaults
	if cluster, ok := strings.CutPrefix(name, meta.ClusterDecision); ok {
		resource, namespace, name = clusterPodDefaults, "", cluster
	}
	return &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: exempt.Verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Name: name,
	}
}

func refusal(user string, access *authorizationv1.ResourceAttributes, reason string) string {
	object := access.Resource + "." + access.Group + "/" + access.Name
	ask := "kubectl auth can-i " + access.Verb + " " + object
	if access.Namespace != "" {
		ask += " -n " + access.Namespace
	}
	text := fmt.Sprintf("%q may not exempt pods from %s; ask for the verb %s on it (%s), or ask a user who has it", user, object, access.Verb, ask)
	if reason != "" {
		text += ": " + reason
	}
	return text
}
