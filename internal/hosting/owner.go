// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// ownerTimeout limits the lookup of the owner.
const ownerTimeout = 30 * time.Second

// OwnerName is the name of the ClusterRole that owns the webhook configurations, empty without one.
func OwnerName(s *registration.Settings) string {
	_, name, _ := strings.Cut(s.Owner, "/")
	return name
}

// FindOwner looks up the UID of the owner, by which the garbage collector identifies it.
func FindOwner(ctx context.Context, s *registration.Settings, config *rest.Config) (*metav1.OwnerReference, error) {
	if s.Owner == "" {
		return nil, nil
	}
	client, err := rbacclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	role, err := client.ClusterRoles().Get(ctx, OwnerName(s), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		err = fmt.Errorf("%w; create it first, or omit it", err)
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%w; 'sallyport manifests' prints the missing permission", err)
	}
	if err != nil {
		return nil, &setting.Problem{Field: "registration.owner", Err: err}
	}
	return &metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID}, nil
}
