// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// LintCluster runs the rules over cluster-scoped objects and the namespaces of webhook servers,
// and asks those servers for their certificates.
func LintCluster(ctx context.Context, c *cluster.Cluster, options lint.Options) (*lint.Report, error) {
	_, inventory, options, err := readForLint(ctx, c, options)
	if err != nil {
		return nil, err
	}
	options.Leaves = Certificates(ctx, inventory.Endpoints())
	return lint.Run(inventory, options), nil
}

// readForLint reads what the rules are about, and adds the API server's resources to the options.
func readForLint(ctx context.Context, c *cluster.Cluster, options lint.Options) (*Objects, *lint.Inventory, lint.Options, error) {
	objects, err := ReadCluster(ctx, c, slices.DeleteFunc(lint.Kinds(), func(gvk schema.GroupVersionKind) bool {
		return options.PodDefault == nil && slices.Contains([]string{"PodDefault", "ClusterPodDefault"}, gvk.Kind) // nothing judges them
	}))
	if err != nil {
		return nil, nil, options, err
	}
	inventory, err := objects.Inventory()
	if err != nil {
		return nil, nil, options, err
	}
	if !options.Release.Known() {
		options.Release, _ = release.OfServer(c.Client.Discovery()) // if it is not known, the defects of all releases are reported
	}
	known, err := resources.OfCluster(c.Client.Discovery())
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err): // the rule reports that the resources are unknown
	case err != nil:
		return nil, nil, options, err
	default:
		options.Resources = known.ForLint()
	}
	return objects, inventory, options, nil
}

// Objects are the objects read from a cluster.
type Objects struct {
	All []lint.Object
	// Missing has the reason for each kind that could not be listed.
	Missing map[schema.GroupVersionKind]string
}

// Inventory builds the inventory for the rules.
func (o *Objects) Inventory() (*lint.Inventory, error) { return lint.ReadCluster(o.All, o.Missing) }

// ReadCluster lists the objects of the given kinds. It reads namespaced kinds only in the
// namespaces of webhook servers. A kind that the user may not list is missing; a kind that the
// cluster does not serve is not.
func ReadCluster(ctx context.Context, c *cluster.Cluster, kinds []schema.GroupVersionKind) (*Objects, error) {
	out := &Objects{Missing: map[schema.GroupVersionKind]string{}}
	var namespaced []schema.GroupVersionKind
	for _, gvk := range kinds {
		switch {
		case gvk.Kind == "Secret":
			// Linting must not require a right to read Secrets: servers present their
			// certificates.
			out.Missing[gvk] = "not read from a cluster, on purpose"
		case slices.Contains(namespacedKinds, gvk.Kind):
			namespaced = append(namespaced, gvk)
		default:
			if err := out.list(ctx, c, gvk, ""); err != nil {
				return nil, err
			}
		}
	}
	first, err := out.Inventory()
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespacesOf(first.Endpoints()) {
		for _, gvk := range namespaced {
			if err := out.list(ctx, c, gvk, namespace); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// namespacedKinds are read only in the namespaces of webhook servers.
var namespacedKinds = []string{"Service", "EndpointSlice", "Deployment", "StatefulSet", "DaemonSet", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", "Role", "RoleBinding"}

func (o *Objects) list(ctx context.Context, c *cluster.Cluster, gvk schema.GroupVersionKind, namespace string) error {
	resource, _ := meta.UnsafeGuessKindToResource(gvk) // correct for these kinds
	listed := func(version string) ([]*manifest.Object, error) {
		return c.List(ctx, workload.Kind{GroupVersion: version, Resource: resource.Resource}.Path(namespace))
	}
	objects, err := listed(gvk.GroupVersion().String())
	if older, ok := lint.Older(gvk); ok && apierrors.IsNotFound(err) {
		objects, err = listed(older.GroupVersion().String())
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		o.Missing[gvk] = "no permission to list " + resource.GroupResource().String()
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
	}
	for _, object := range objects {
		converted := forLint(object)
		converted.At = nil
		o.All = append(o.All, converted)
	}
	return nil
}

// namespacesOf returns the namespaces of the Services among endpoints.
func namespacesOf(endpoints []string) []string {
	var out []string
	for _, endpoint := range endpoints {
		if _, namespace, ok := ServiceOf(endpoint); ok && !slices.Contains(out, namespace) {
			out = append(out, namespace)
		}
	}
	return out
}

// ServiceOf returns the Service of an endpoint "name.namespace.svc:port"; ok is false for any
// other endpoint.
func ServiceOf(endpoint string) (name, namespace string, ok bool) {
	host, _, err := net.SplitHostPort(endpoint)
	parts := strings.Split(host, ".")
	if err != nil || len(parts) != 3 || parts[2] != "svc" {
		return "", "", false
	}
	return parts[0], parts[1], true
}
