// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/registration"
)

// ownerTimeout limits the lookup of the owner.
const ownerTimeout = 30 * time.Second

// AddOwnerFlag adds the flag for the owner of the webhook configurations.
func (s *RegistrationSettings) AddOwnerFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Owner, "owner", s.Owner,
		"with --registration api: `object` that owns the webhook configurations, clusterrole/NAME: they are garbage-collected when it is deleted; empty for none")
}

// OwnerName is the name of the ClusterRole of --owner, empty without one.
func (s *RegistrationSettings) OwnerName() string {
	_, name, _ := strings.Cut(s.Owner, "/")
	return name
}

// ValidateOwner reports every problem in --owner.
func (s *RegistrationSettings) ValidateOwner() error {
	if s.Owner == "" {
		return nil
	}
	var errs []error
	if s.Mode != registration.ModeAPI {
		errs = append(errs, problemf("%s: only valid with %s api", setting("owner"), setting("registration")))
	}
	kind, name, _ := strings.Cut(s.Owner, "/")
	// Names of RBAC objects only need to be valid path segments.
	if !strings.EqualFold(kind, "clusterrole") || name == "" || len(content.IsPathSegmentName(name)) > 0 {
		errs = append(errs, problemf("%s %q: must be clusterrole/NAME; an owner of cluster-scoped objects is cluster-scoped", setting("owner"), s.Owner))
	}
	return errors.Join(errs...)
}

// FindOwner looks up the UID of the owner, by which the garbage collector identifies it.
func (s *RegistrationSettings) FindOwner(ctx context.Context, config *rest.Config) error {
	if s.Owner == "" {
		return nil
	}
	client, err := rbacclient.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	role, err := client.ClusterRoles().Get(ctx, s.OwnerName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return problemf("%s %s: %w; create it first, or omit the flag", setting("owner"), s.Owner, err)
	case apierrors.IsForbidden(err):
		return problemf("%s %s: %w; 'sallyport manifests' prints the missing permission", setting("owner"), s.Owner, err)
	case err != nil:
		return problemf("%s %s: %w", setting("owner"), s.Owner, err)
	}
	s.owner = &metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID}
	return nil
}
