// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"fmt"
	"net/netip"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/recording"
	"github.com/sallyport-io/sallyport/internal/hosting/delegated"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// Callers restricts callers to the API server.
type Callers struct {
	NetworkPolicy bool
	// CIDRs are the addresses of API servers; empty for any address.
	CIDRs []string
	// MetricsFrom selects the namespaces whose pods may read metrics; empty for none.
	MetricsFrom string
	// PodSelector selects the server's pods; empty for the workload's.
	PodSelector string
}

func (c *Callers) validate() error {
	var errs []error
	if !c.NetworkPolicy && len(c.CIDRs) > 0 {
		errs = append(errs, errors.New("--api-server-cidrs is only for a NetworkPolicy: leave out --network-policy=false"))
	}
	for _, cidr := range c.CIDRs {
		if prefix, err := netip.ParsePrefix(cidr); err != nil || prefix != prefix.Masked() {
			errs = append(errs, fmt.Errorf("--api-server-cidrs %q: write an address and its prefix length, for example 10.0.0.1/32", cidr))
		}
	}
	if _, err := metav1.ParseToLabelSelector(c.PodSelector); err != nil {
		errs = append(errs, fmt.Errorf("--pod-selector: %w", err))
	}
	if _, err := metav1.ParseToLabelSelector(c.MetricsFrom); err != nil {
		errs = append(errs, fmt.Errorf("--metrics-from: %w", err))
	}
	return errors.Join(errs...)
}

// rights returns the permissions of the server to authenticate callers through the API server,
// and those of a caller. The ClusterRole ending in "-caller" is for the API server's user. The
// administrator who configures that user binds it.
func (c *Callers) rights(config registration.Config, serviceAccount string, of *serve.Config) ([]runtime.Object, error) {
	calls, metrics := of.Authentication.Mode == serve.AuthenticationDelegated, of.Authentication.Metrics == serve.AuthenticationDelegated
	if !calls && !metrics {
		return nil, nil
	}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	meta := func(namespace, suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: config.Name + suffix,
			Labels: map[string]string{registration.ManagedByLabel: registration.ManagedByValue},
		}
	}
	role := func(suffix, verb string, paths ...string) runtime.Object {
		return &rbacv1.ClusterRole{
			TypeMeta: kind("ClusterRole"), ObjectMeta: meta("", suffix),
			Rules: []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{verb}}},
		}
	}
	var objects []runtime.Object
	if calls {
		paths, err := of.Paths()
		if err != nil {
			return nil, err
		}
		objects = append(objects, role("-caller", delegated.Verb, paths...))
	}
	if metrics {
		objects = append(objects, role("-metrics-reader", delegated.MetricsVerb, "/metrics"))
		if of.Recording.RecentReviews > 0 {
			objects = append(objects, role("-recorded-reviews-reader", delegated.MetricsVerb, recording.RecentPath))
		}
	}
	if config.Endpoint.Service == nil {
		return objects, nil
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: config.Endpoint.Service.Namespace, Name: serviceAccount}}
	return append(objects,
		&rbacv1.ClusterRoleBinding{
			TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta("", "-auth-delegator"), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		},
		&rbacv1.RoleBinding{
			TypeMeta: kind("RoleBinding"), ObjectMeta: meta(metav1.NamespaceSystem, "-authentication-reader"), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
		}), nil
}
