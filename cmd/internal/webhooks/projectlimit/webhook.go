// SPDX-License-Identifier: Apache-2.0

// Package projectlimit limits the projects of each requester: OpenShift's project
// requests, and plain namespaces. A mutating webhook sets the requester of new
// namespaces. A validating webhook counts them and protects the annotation.
package projectlimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// Identifiers of the webhooks in the API.
const (
	StampName = "requester.projectlimit.sallyport.io"
	StampPath = "/mutate-projectlimit"
	CountName = "projectlimit.sallyport.io"
	CountPath = "/validate-projectlimit"
)

var (
	namespaceResource      = metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	projectRequestResource = metav1.GroupVersionResource{Group: "project.openshift.io", Version: "v1", Resource: "projectrequests"}
)

// New defines the webhooks for a source of projects. The error reports all problems in
// the settings.
func New(source Source, settings Settings) ([]admission.Webhook, error) {
	err := settings.Validate()
	if source == nil {
		err = errors.Join(errors.New("projectlimit: no source of projects"), err)
	}
	if err != nil {
		return nil, err
	}
	rule := func(r metav1.GroupVersionResource, operation admissionregistrationv1.OperationType, subResources ...string) admissionregistrationv1.RuleWithOperations {
		scope := admissionregistrationv1.ClusterScope
		out := admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{r.Group}, APIVersions: []string{r.Version}, Resources: []string{r.Resource}, Scope: &scope,
			},
		}
		for _, sub := range subResources {
			out.Resources = append(out.Resources, r.Resource+"/"+sub)
		}
		return out
	}
	create, update := admissionregistrationv1.Create, admissionregistrationv1.Update
	notExempt := exemption(settings)
	return []admission.Webhook{
		{
			Name:            StampName,
			Path:            StampPath,
			Type:            admission.TypeMutating,
			Rules:           []admissionregistrationv1.RuleWithOperations{rule(namespaceResource, create)},
			MatchConditions: notExempt,
			Handler:         &stamper{settings},
		},
		{
			Name: CountName,
			Path: CountPath,
			Type: admission.TypeValidating,
			Rules: []admissionregistrationv1.RuleWithOperations{
				rule(namespaceResource, create), rule(projectRequestResource, create),
				// Subresources can change annotations too.
				rule(namespaceResource, update, "status", "finalize"),
			},
			MatchConditions: append(notExempt[:len(notExempt):len(notExempt)], admissionregistrationv1.MatchCondition{
				Name: "is-new-or-changes-hands",
				Expression: "request.operation == 'CREATE' || " + annotation("object", Annotation) + " != " + annotation("oldObject", Annotation) +
					" || " + annotation("object", OpenShiftAnnotation) + " != " + annotation("oldObject", OpenShiftAnnotation),
			}),
			// A claim makes a reservation in memory, except on dry run.
			SideEffects: admissionregistrationv1.SideEffectClassNoneOnDryRun,
			Handler:     &counter{settings, source},
		},
	}, nil
}

// annotation returns a CEL expression for an annotation, "" if it is absent.
func annotation(object, key string) string {
	at := object + ".metadata.annotations"
	return fmt.Sprintf("(has(%s) && '%s' in %s ? %s['%s'] : '')", at, key, at, at, key)
}

// exemption excludes requests of exempt users, so that they do not depend on a running
// server.
func exemption(settings Settings) []admissionregistrationv1.MatchCondition {
	list := func(names []string) string {
		quoted := make([]string, len(names))
		for i, name := range names {
			quoted[i] = strconv.QuoteToASCII(name)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	var out []admissionregistrationv1.MatchCondition
	if len(settings.ExemptUsers) > 0 {
		out = append(out, admissionregistrationv1.MatchCondition{
			Name: "no-exempt-user", Expression: "!(request.userInfo.username in " + list(settings.ExemptUsers) + ")",
		})
	}
	if len(settings.ExemptGroups) > 0 {
		out = append(out, admissionregistrationv1.MatchCondition{
			Name:       "no-exempt-group",
			Expression: "!has(request.userInfo.groups) || !request.userInfo.groups.exists(g, g in " + list(settings.ExemptGroups) + ")",
		})
	}
	return out
}

func wrongResource(req *admissionv1.AdmissionRequest) *admission.Response {
	return admission.BadRequest("the request is for %s; this webhook is for namespaces and project requests: correct the rules of its configuration",
		req.Resource.String())
}

func unreadable() *admission.Response {
	return admission.BadRequest("cannot read the request's object: metadata or annotations are missing or not an object")
}
