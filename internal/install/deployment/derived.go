// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault/backstop"
	"github.com/sallyport-io/sallyport/registration"
)

// EarlierIndexes is the former resource of the backstop's indexes, which are PodTemplates now.
// A policy that reads it denies every pod for up to 30 seconds after each start of an API
// server.
var EarlierIndexes = sallyportv1alpha1.Resource("poddefaultindexes")

// RemoveDerived removes what servers derive from PodDefaults in all namespaces: the backstop's
// indexes and revisions. Remove the policy that reads the indexes first. Another server that
// needs them writes the indexes and the current revisions again. The garbage collector may
// not find revisions whose PodDefaults go together with their definition.
func RemoveDerived(ctx context.Context, c *cluster.Cluster, dryRun bool) ([]registration.Removal, error) {
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	return removeDerived(ctx, client, dryRun)
}

func removeDerived(ctx context.Context, client metadata.Interface, dryRun bool) ([]registration.Removal, error) {
	named := func(name string) metav1.ListOptions {
		return metav1.ListOptions{LabelSelector: managed, FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	}
	var out []registration.Removal
	for _, derived := range []struct {
		resource schema.GroupVersionResource
		options  metav1.ListOptions
	}{
		{corev1.SchemeGroupVersion.WithResource(backstop.TemplateResource), named(backstop.TemplateName)}, {EarlierIndexes, named("poddefaults")},
		{appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), metav1.ListOptions{LabelSelector: managed + "," + poddefault.RevisionLabel}},
	} {
		removal, err := removeAll(ctx, client.Resource(derived.resource), derived.resource, derived.options, dryRun)
		if err != nil {
			return out, err
		}
		if removal != nil {
			out = append(out, *removal)
		}
	}
	return out, nil
}

const managed = registration.ManagedByLabel + "=" + registration.ManagedByValue

func removeAll(ctx context.Context, derived metadata.Getter, resource schema.GroupVersionResource, which metav1.ListOptions, dryRun bool) (*registration.Removal, error) {
	list, err := derived.List(ctx, which)
	if apierrors.IsNotFound(err) || err == nil && len(list.Items) == 0 {
		return nil, nil
	}
	removal := &registration.Removal{Object: resource.GroupResource().String(), Action: registration.Deleted}
	if apierrors.IsForbidden(err) { // nothing reads them any more
		removal.Action, removal.Why = registration.Left, "no permission to list them; nothing reads them any more"
		return removal, nil
	}
	if err != nil {
		return nil, err
	}
	options := metav1.DeleteOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	namespaces := map[string]bool{}
	for _, item := range list.Items {
		namespaces[item.Namespace] = true
		if err := derived.Namespace(item.Namespace).Delete(ctx, item.Name, options); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	removal.Object += fmt.Sprintf(" of %d namespaces", len(namespaces))
	return removal, nil
}
