// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkRights checks that the server has each permission that manifests prints.
func (d *doctor) checkRights(ctx context.Context) {
	const check = "rights"
	namespace, account, ok := strings.Cut(d.ServiceAccount, "/")
	if !ok {
		account = namespace
		s := d.service()
		if s == nil {
			d.Skip(check, "for a server that is reached by a URL, pass --service-account NAMESPACE/NAME")
			return
		}
		namespace = s.Namespace
	}
	who := "system:serviceaccount:" + namespace + ":" + account
	expected, err := d.Rights(d.installation())
	if err != nil {
		d.Fix(check, "correct the flags of doctor", "the rights that %s needs are unknown: %v", who, err)
		return
	}
	var lacking []string
	asked := 0
	for _, object := range expected {
		var rules []rbacv1.PolicyRule
		in := ""
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules = role.Rules
		case *rbacv1.Role:
			rules, in = role.Rules, role.Namespace
		}
		for _, attributes := range attributesOf(rules, in) {
			review, err := d.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: who, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}, ResourceAttributes: &attributes},
			}, metav1.CreateOptions{})
			if err != nil {
				d.Unread(check, "create subjectaccessreviews", err)
				return
			}
			asked++
			if !review.Status.Allowed {
				lacking = append(lacking, strings.TrimSpace(fmt.Sprintf("%s %s %s", attributes.Verb, attributes.Resource, attributes.Name)))
			}
		}
	}
	if len(lacking) > 0 {
		slices.Sort(lacking)
		d.Fix(check, "apply the output of '"+d.Program+" manifests --part rbac' with the flags of the server", "%s cannot %s", who, strings.Join(slices.Compact(lacking), ", "))
		return
	}
	d.OK(check, "%s has the %d rights that it needs", who, asked)
}

// attributesOf expands rules into single permissions.
func attributesOf(rules []rbacv1.PolicyRule, namespace string) []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						out = append(out, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Name: name})
					}
				}
			}
		}
	}
	return out
}
