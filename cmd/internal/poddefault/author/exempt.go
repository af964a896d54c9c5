// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// Identifiers of the webhook for exemptions in the API.
const (
	ExemptName = "exempt.poddefault.sallyport.io"
	ExemptPath = "/validate-poddefault/exempt"
)

// ExemptVerb is the verb of RBAC on a PodDefault or ClusterPodDefault that a user needs to
// exempt pods from it.
const ExemptVerb = "exempt"

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// NewExempt defines the webhook for [exempt.ExemptAnnotation]. It refuses what cannot
// be read, and exemptions that are new or wider than before if they have ended, end later
// than maxExemption from now, or if the user may not exempt from their objects. It fails
// closed, and is called only when the annotation is set or changes.
func NewExempt(authorizer Authorizer, maxExemption time.Duration) (admission.Webhook, error) {
	if authorizer == nil {
		return admission.Webhook{}, errors.New("author: the authorizer for exemptions from PodDefaults is missing")
	}
	scope := admissionregistrationv1.ClusterScope
	has := func(object string) string {
		return "has(" + object + ".metadata.annotations) && '" + exempt.ExemptAnnotation + "' in " + object + ".metadata.annotations"
	}
	value := func(object string) string {
		return object + ".metadata.annotations['" + exempt.ExemptAnnotation + "']"
	}
	return admission.Webhook{
		Name: ExemptName, Path: ExemptPath, Type: admission.TypeValidating,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{namespaces.Group}, APIVersions: []string{namespaces.Version}, Scope: &scope,
				// The subresources store annotations, too.
				Resources: []string{namespaces.Resource, namespaces.Resource + "/status", namespaces.Resource + "/finalize"},
			},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "exemption-changes",
			Expression: has("object") + " && (request.operation == 'CREATE' || !(" + has("oldObject") + ") || " +
				value("object") + " != " + value("oldObject") + ")",
		}},
		FailurePolicy: admissionregistrationv1.Fail,
		AllowWedge:    "the match condition limits it to changes of the annotation " + exempt.ExemptAnnotation,
		Handler:       &exemptHandler{authorizer: authorizer, longest: maxExemption, now: time.Now},
	}, nil
}

type exemptHandler struct {
	authorizer Authorizer
	longest    time.Duration
	now        func() time.Time
}

// Handle implements [admission.Handler].
func (h *exemptHandler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if resource := schema.GroupVersionResource(req.Resource); resource != namespaces {
		return admission.BadRequest("the request is for %s; this webhook is for namespaces: correct the rules of its configuration", req.Resource.String()), nil
	}
	var object, old metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
		return admission.BadRequest("the request's object is not a namespace"), nil
	}
	if len(req.OldObject.Raw) > 0 {
		if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
			return admission.BadRequest("the request's old object is not a namespace"), nil
		}
	}
	value := object.Annotations[exempt.ExemptAnnotation]
	if value == old.Annotations[exempt.ExemptAnnotation] {
		return admission.Allowed(), nil
	}
	list, err := exempt.ParseExemptions(value)
	if err != nil {
		return admission.Deniedf("namespace %s: annotation %s: %s", object.Name, exempt.ExemptAnnotation, strings.ReplaceAll(err.Error(), "\n", "; ")), nil
	}
	before, err := exempt.ParseExemptions(old.Annotations[exempt.ExemptAnnotation])
	if err != nil {
		before = nil // it exempts from nothing
	}
	wider := map[string]bool{}
	for i := range list {
		e := &list[i]
		for _, name := range e.Objects {
			if slices.ContainsFunc(before, func(b exempt.Exemption) bool { return b.Covers(e, name) }) {
				continue
			}
			if problem := h.limits(e); problem != "" {
				return admission.Deniedf("namespace %s: annotation %s: the exemption from %s %s", object.Name, exempt.ExemptAnnotation, name, problem), nil
			}
			wider[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wider)) {
		access := exemptAccess(object.Name, name)
		allowed, reason, err := h.authorizer.May(ctx, &req.UserInfo, access)
		if err != nil {
			return nil, err
		}
		if !allowed {
			return admission.Denied(refusal(req.UserInfo.Username, access, reason)), nil
		}
	}
	return admission.Allowed(), nil
}

// limits returns what is wrong with when an exemption ends, or "".
func (h *exemptHandler) limits(e *exempt.Exemption) string {
	switch left := e.Until.Sub(h.now()); {
	case left <= 0:
		return "has ended: give a time in the future"
	case left > h.longest:
		return "ends more than " + h.longest.String() + " from now, which is the server's maxExemption: give an earlier time"
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
		Namespace: namespace, Verb: ExemptVerb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Name: name,
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
