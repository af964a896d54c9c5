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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/registration"
)

// ownerTimeout is for finding the owner.
const ownerTimeout = 30 * time.Second

// AddOwnerFlag adds the flag that says with what the webhook configurations go.
func (s *RegistrationSettings) AddOwnerFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Owner, "owner", s.Owner,
		"with --registration api: the `object` with whose deletion the webhook configurations go too, clusterrole/NAME; empty for none")
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
		errs = append(errs, problemf("%s: of no use without %s api", setting("owner"), setting("registration")))
	}
	kind, name, _ := strings.Cut(s.Owner, "/")
	// Names of RBAC's objects need to be segments of a path, and no more.
	if !strings.EqualFold(kind, "clusterrole") || name == "" || len(content.IsPathSegmentName(name)) > 0 {
		errs = append(errs, problemf("%s %q: write clusterrole/NAME; an owner of cluster-scoped objects is cluster-scoped", setting("owner"), s.Owner))
	}
	return errors.Join(errs...)
}

// FindOwner looks up the UID of the owner: by it, not by the name, the garbage
// collector knows whether an owner is still there.
func (s *RegistrationSettings) FindOwner(ctx context.Context, client *rest.Config) error {
	if s.Owner == "" {
		return nil
	}
	clients, err := kubernetes.NewForConfig(client)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	role, err := clients.RbacV1().ClusterRoles().Get(ctx, s.OwnerName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return problemf("%s %s: %w; create it first, or leave the flag out", setting("owner"), s.Owner, err)
	case apierrors.IsForbidden(err):
		return problemf("%s %s: %w; 'sallyport manifests' prints the right that is missing", setting("owner"), s.Owner, err)
	case err != nil:
		return problemf("%s %s: %w", setting("owner"), s.Owner, err)
	}
	s.owner = &metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID}
	return nil
}
