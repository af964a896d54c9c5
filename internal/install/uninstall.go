// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/hosting/staticmanifests"
	"github.com/sallyport-io/sallyport/internal/install/authority"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// Uninstall removes what a server has registered.
type Uninstall struct {
	// Name is the name of the webhook configurations.
	Name string
	// Directories are those of static admission manifests, which are removed instead of the
	// configurations in the cluster.
	Directories []string
	// Conversions names the CustomResourceDefinitions whose conversion strategy is set to None.
	Conversions []string
	// Authority is removed with its lease; nil keeps both.
	Authority *authority.Authority
	// Leases names other leases in the authority's namespace, which are removed with it.
	Leases []string
	// Also removes other objects that this server writes, after the configurations. It may be
	// nil.
	Also func(ctx context.Context, config *rest.Config, dryRun bool) ([]registration.Removal, error)
	// Clients are nil if only files are removed.
	Clients *hosting.Clients
}

// Remove removes everything in order. On error it returns the removals so far. In a dry run,
// the API server validates every request but stores nothing.
func (u *Uninstall) Remove(ctx context.Context, dryRun bool) ([]registration.Removal, error) {
	options := registration.RemoveOptions{Name: u.Name, DryRun: dryRun}
	var out []registration.Removal
	for _, step := range []func() ([]registration.Removal, error){
		func() ([]registration.Removal, error) {
			if len(u.Directories) > 0 {
				return u.removeStatic(options)
			}
			return registration.RemoveConfigurations(ctx, u.Clients.Configurations, options)
		},
		func() ([]registration.Removal, error) {
			if u.Also == nil || u.Clients == nil {
				return nil, nil
			}
			return u.Also(ctx, u.Clients.Config, dryRun)
		},
		func() ([]registration.Removal, error) { return u.removeConversions(ctx, options) },
		func() ([]registration.Removal, error) { return u.removeAuthority(ctx, dryRun) },
	} {
		removals, err := step()
		out = append(out, removals...)
		if err != nil {
			return out, withRightsHint(err)
		}
	}
	return out, nil
}

// removeStatic removes the static manifests of all directories.
func (u *Uninstall) removeStatic(options registration.RemoveOptions) (out []registration.Removal, err error) {
	for _, directory := range u.Directories {
		removals, err := staticmanifests.Remove(directory, options)
		out = append(out, removals...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func (u *Uninstall) removeConversions(ctx context.Context, options registration.RemoveOptions) ([]registration.Removal, error) {
	if len(u.Conversions) > 0 {
		return RemoveConversions(ctx, u.Clients.Definitions, u.Conversions, options)
	}
	if u.Clients == nil {
		return nil, nil
	}
	left, err := LeftConversions(ctx, u.Clients.Definitions, options)
	if apierrors.IsForbidden(err) { // informational only; removing does not need this permission
		return nil, nil
	}
	for i := range left {
		left[i].Why += "; --conversion sets the strategy None"
	}
	return left, err
}

// removeAuthority removes the leases, and the Secret if it contains an authority.
func (u *Uninstall) removeAuthority(ctx context.Context, dryRun bool) ([]registration.Removal, error) {
	if u.Authority == nil {
		return nil, nil
	}
	name, at := u.Authority.Name, " of namespace "+u.Authority.Namespace
	secrets, leases := u.Clients.Secrets.Secrets(u.Authority.Namespace), u.Clients.Leases.Leases(u.Authority.Namespace)
	var out []registration.Removal
	options := metav1.DeleteOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		removal := registration.Removal{Object: "secret/" + name + at, Action: registration.Deleted}
		if _, unreadable := certificate.ReadStatus(secret); unreadable != nil {
			removal.Action, removal.Why = registration.Left, "it holds no authority"
		} else {
			options.Preconditions = &metav1.Preconditions{UID: &secret.UID}
			if err := secrets.Delete(ctx, name, options); err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
		}
		out = append(out, removal)
	}
	options.Preconditions = nil
	for _, lease := range append([]string{name}, u.Leases...) {
		err := leases.Delete(ctx, lease, options)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return out, err
		default:
			out = append(out, registration.Removal{Object: "lease.coordination.k8s.io/" + lease + at, Action: registration.Deleted})
		}
	}
	return out, nil
}

// CheckNoLeader returns an error while a server holds the authority's lease: it would
// register its webhooks again.
func CheckNoLeader(ctx context.Context, a authority.Authority, now time.Time) error {
	lease, err := a.Lease(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("checking whether a server still leads: %w; --force skips this check", err)
	}
	if lease.Holder == "" || !now.Before(lease.Ends()) {
		return nil
	}
	return fmt.Errorf("%s leads (lease %s/%s) and would register its webhooks again: scale the server down first; "+
		"if it has crashed, its lease expires at %s; --force uninstalls anyway",
		lease.Holder, a.Namespace, a.Name, lease.Ends().UTC().Format(time.RFC3339))
}

// withRightsHint adds a hint to an error about missing permissions.
func withRightsHint(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; run it again with a kubeconfig that has the permission: it continues where it stopped", err)
	}
	return err
}

// Leases returns the names of an application's leases other than its authority's: the leases of
// its controllers and its components.
func Leases(application string) []string {
	return []string{application, hosting.ComponentsLease(application)}
}
