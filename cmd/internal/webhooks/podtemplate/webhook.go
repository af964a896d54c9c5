// SPDX-License-Identifier: Apache-2.0

// Package podtemplate warns users who apply a workload of what its pods would meet: that they would be refused, or
// created without a PodDefault that selects them. Otherwise only the events of a ReplicaSet or Job tell.
//
// It builds the pods that a workload's controller would create and asks the webhooks for pods about them, as a dry run. It
// never denies, changes nothing, and is registered with the failure policy Ignore.
package podtemplate

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// Identifiers of the webhook in the API.
const (
	Name = "podtemplate.sallyport.io"
	Path = "/warn-podtemplate"
)

// TimeoutSeconds limits how long a user waits for warnings.
const TimeoutSeconds = 2

// A Preview returns why a pod would be refused and what it would lack, as ends of a sentence about it. The request is that of
// a dry run.
type Preview = func(ctx context.Context, pod *admissionv1.AdmissionRequest) ([]string, error)

// New defines the webhook, which asks all previews. The error reports all problems of the settings.
func New(settings Settings, previews []Preview) ([]admission.Webhook, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	h := &handler{resources: settings.resources(), previews: previews}
	return []admission.Webhook{{
		Name: Name,
		Path: Path,
		Type: admission.TypeValidating, // it sees the template as it will be stored
		// The server has the last word about both: see its row.
		FailurePolicy: admissionregistrationv1.Ignore, TimeoutSeconds: TimeoutSeconds,
		Rules: rules(h.resources),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name:       "not-of-a-controller",
			Expression: "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)",
		}},
		Handler: h,
	}}, nil
}

// rules has one rule for each group and version.
func rules(resources []metav1.GroupVersionResource) (out []admissionregistrationv1.RuleWithOperations) {
	namespaced := admissionregistrationv1.NamespacedScope
	for _, r := range resources {
		i := slices.IndexFunc(out, func(o admissionregistrationv1.RuleWithOperations) bool {
			return o.APIGroups[0] == r.Group && o.APIVersions[0] == r.Version
		})
		if i >= 0 {
			out[i].Resources = append(out[i].Resources, r.Resource)
			continue
		}
		out = append(out, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{r.Group}, APIVersions: []string{r.Version}, Resources: []string{r.Resource}, Scope: &namespaced,
			},
		})
	}
	return out
}
