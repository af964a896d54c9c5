// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/author"
)

// authorsOf asks the API server what authors may do.
func authorsOf(config *rest.Config) (author.Authorizer, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return author.BySubjectAccessReview(clients.AuthorizationV1().SubjectAccessReviews()), nil
}

// classesOf asks the API server whether a class exists.
func classesOf(config *rest.Config) (author.MissingClass, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return author.MissingByGet(client), nil
}

// classRights are to get any class by name: which one a PodDefault names is not known before.
var classRights = []rbacv1.PolicyRule{
	{APIGroups: []string{author.PriorityClasses.Group}, Resources: []string{author.PriorityClasses.Resource}, Verbs: []string{"get"}},
	{APIGroups: []string{author.RuntimeClasses.Group}, Resources: []string{author.RuntimeClasses.Resource}, Verbs: []string{"get"}},
}

// authorRights are to ask it.
func authorRights(settings *PodDefaultSettings) []rbacv1.PolicyRule {
	if settings.Authorize == author.Off && !settings.Exempts() && settings.Usage != poddefault.UsageCheck {
		return nil
	}
	return []rbacv1.PolicyRule{{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}}}
}

// connectionRights are to read metadata of Secrets, for which RBAC has no right of its own.
func connectionRights(settings *PodDefaultSettings) []rbacv1.PolicyRule {
	if settings.DataConnections == "" {
		return nil
	}
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}}}
}

// Anybody may do anything where there is no cluster to ask.
type Anybody struct{}

// May implements [author.Authorizer].
func (Anybody) May(context.Context, *authenticationv1.UserInfo, *authorizationv1.ResourceAttributes) (bool, string, error) {
	return true, "", nil
}
