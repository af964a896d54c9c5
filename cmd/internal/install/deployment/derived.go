// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/reports"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// RemoveDerived removes what controllers derived from PodDefaults in all namespaces: indexes,
// whose policy is to be removed first, and reports. Another server that needs them writes
// them again.
func RemoveDerived(ctx context.Context, config *rest.Config, dryRun bool) ([]registration.Removal, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return removeDerived(ctx, client, dryRun)
}

func removeDerived(ctx context.Context, client metadata.Interface, dryRun bool) ([]registration.Removal, error) {
	var out []registration.Removal
	for _, derived := range []struct {
		resource schema.GroupVersionResource
		name     string
	}{
		{corev1.SchemeGroupVersion.WithResource(backstop.TemplateResource), backstop.TemplateName},
		{reports.Resource, reports.ReportName},
	} {
		removal, err := removeAll(ctx, client, derived.resource, derived.name, dryRun)
		if err != nil {
			return out, err
		}
		if removal != nil {
			out = append(out, *removal)
		}
	}
	return out, nil
}

func removeAll(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, name string, dryRun bool) (*registration.Removal, error) {
	objects := client.Resource(resource)
	list, err := objects.List(ctx, metav1.ListOptions{
		LabelSelector: registration.ManagedByLabel + "=" + registration.ManagedByValue,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
	})
	if apierrors.IsNotFound(err) || err == nil && len(list.Items) == 0 {
		return nil, nil
	}
	removal := &registration.Removal{Object: resource.GroupResource().String(), Action: registration.Deleted}
	if apierrors.IsForbidden(err) {
		removal.Action, removal.Why = registration.Left, "no permission to list them; this server no longer uses them"
		return removal, nil
	}
	if err != nil {
		return nil, err
	}
	options := metav1.DeleteOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	for _, item := range list.Items {
		if err := objects.Namespace(item.Namespace).Delete(ctx, item.Name, options); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	removal.Object += fmt.Sprintf(" of %d namespaces", len(list.Items))
	return removal, nil
}
