// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/registration"
)

// removeIndexes removes the indexes of all namespaces, which were made from PodDefaults.
// It comes after the policy that reads them, and before anybody removes their
// definition. Another server that needs them writes them again.
func (u *uninstaller) removeIndexes(ctx context.Context, dryRun bool) ([]registration.Removal, error) {
	if u.metadata == nil {
		return nil, nil
	}
	indexes := u.metadata.Resource(sallyportv1alpha1.Resource(sallyportv1alpha1.PodDefaultIndexResource))
	ours := metav1.ListOptions{LabelSelector: registration.ManagedByLabel + "=" + registration.ManagedByValue}
	list, err := indexes.List(ctx, ours)
	if apierrors.IsNotFound(err) || err == nil && len(list.Items) == 0 {
		return nil, nil
	}
	removal := registration.Removal{Object: sallyportv1alpha1.PodDefaultIndexResource + "." + sallyportv1alpha1.GroupName, Action: registration.Deleted}
	if apierrors.IsForbidden(err) { // nobody reads them any more
		removal.Action, removal.Why = registration.Left, "no permission to list them; nothing reads them any more"
		return []registration.Removal{removal}, nil
	}
	if err != nil {
		return nil, err
	}
	options := metav1.DeleteOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	for _, item := range list.Items {
		if err := indexes.Namespace(item.Namespace).Delete(ctx, item.Name, options); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	removal.Object += fmt.Sprintf(" of %d namespaces", len(list.Items))
	return []registration.Removal{removal}, nil
}
