// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/webhooks/poddefault/author"
)

// podDefaultSettings are those of injection, and of who may write what is injected.
type podDefaultSettings struct {
	poddefault.Settings
	// Authorize says what becomes of a PodDefault whose author may not create pods.
	Authorize author.Mode `json:"authorizeAuthors"`
	// Guard says what becomes of pods while no server answers.
	Guard guard `json:"guard"`
}

func defaultPodDefaultSettings() podDefaultSettings {
	return podDefaultSettings{Settings: poddefault.DefaultSettings(), Authorize: author.Enforce}
}

// Validate reports every mistake, by the names that the fields have in a file.
func (s podDefaultSettings) Validate() error {
	return errors.Join(s.Settings.Validate(), s.Authorize.Validate(), s.Guard.Validate())
}

// addAuthorFlag adds the flag on which rights and failure policy of the webhook for
// authors depend.
func addAuthorFlag(cmd *cobra.Command, settings *podDefaultSettings) {
	cmd.Flags().StringVar((*string)(&settings.Authorize), "authorize-authors", string(settings.Authorize),
		"`what` becomes of a PodDefault whose author may not create pods there: refuse it (enforce), admit it with a warning (warn), or do not ask (off)")
	cli.CompleteChoices(cmd, "authorize-authors", author.Modes)
}

// validateAuthorFlag reports what is wrong with that flag.
func validateAuthorFlag(settings *podDefaultSettings) error {
	return cli.Choice("authorize-authors", string(settings.Authorize), author.Modes)
}

// authorsOf asks the API server what authors may do.
func authorsOf(config *rest.Config) (author.Authorizer, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return author.BySubjectAccessReview(clients.AuthorizationV1().SubjectAccessReviews()), nil
}

// authorRights are to ask it.
func authorRights(settings *builtinSettings) []rbacv1.PolicyRule {
	if settings.podDefault.Authorize == author.Off {
		return nil
	}
	return []rbacv1.PolicyRule{{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}}}
}

// anybody may create pods where there is no cluster to ask.
type anybody struct{}

// MayCreatePods implements [author.Authorizer].
func (anybody) MayCreatePods(context.Context, *authenticationv1.UserInfo, string) (bool, string, error) {
	return true, "", nil
}
