// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
	"github.com/sallyport-io/sallyport/internal/kube/foreign"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// conversionCallTimeout limits a single call about a definition.
const conversionCallTimeout = 30 * time.Second

func manager(o registration.RemoveOptions) string {
	return cmp.Or(o.FieldManager, registration.DefaultFieldManager)
}

// RemoveConversions sets spec.conversion of the definitions to the strategy None, with
// which the API server changes only apiVersion between versions: correct if the versions
// have the same schema, and lossy otherwise. A definition whose conversion webhook the
// field manager does not own is left.
func RemoveConversions(ctx context.Context, client crdclient.Interface, crds []string, o registration.RemoveOptions) ([]registration.Removal, error) {
	var out []registration.Removal
	for _, name := range slices.Compact(slices.Sorted(slices.Values(crds))) {
		var removal *registration.Removal
		// The API server writes the status of definitions at any time.
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
			removal, err = removeConversion(ctx, client, name, o)
			return err
		})
		if err != nil {
			return out, fmt.Errorf("%s %s: %w", "CustomResourceDefinition", name, err)
		}
		if removal != nil {
			out = append(out, *removal)
		}
	}
	return out, nil
}

func removeConversion(ctx context.Context, client crdclient.Interface, name string, o registration.RemoveOptions) (*registration.Removal, error) {
	ctx, cancel := context.WithTimeout(ctx, conversionCallTimeout)
	defer cancel()
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !convertsByWebhook(live):
		return nil, nil
	}
	removal := &registration.Removal{Object: definitionObject(name), Action: registration.Left}
	if !ownsConversion(live, manager(o)) {
		removal.Why = fmt.Sprintf("the field manager %s does not own its conversion webhook", manager(o))
		return removal, nil
	}
	// An apply would keep what other managers own in the stanza, and the API server rejects a
	// stanza without a strategy.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": live.UID, "resourceVersion": live.ResourceVersion},
		"spec":     map[string]any{"conversion": map[string]any{"strategy": apiextensionsv1.NoneConverter, "webhook": nil}},
	})
	if err != nil {
		return nil, err
	}
	var dryRun []string
	if o.DryRun {
		dryRun = []string{metav1.DryRunAll}
	}
	if _, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager(o), DryRun: dryRun}); err != nil {
		return nil, err
	}
	removal.Action, removal.Why = registration.Changed, "its conversion strategy is None"
	return removal, nil
}

// LeftConversions returns the definitions whose conversion webhook the field manager owns.
// It needs permission to list all definitions.
func LeftConversions(ctx context.Context, client crdclient.Interface, o registration.RemoveOptions) ([]registration.Removal, error) {
	ctx, cancel := context.WithTimeout(ctx, conversionCallTimeout)
	defer cancel()
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []registration.Removal
	for i := range list.Items {
		if crd := &list.Items[i]; convertsByWebhook(crd) && ownsConversion(crd, manager(o)) {
			out = append(out, registration.Removal{
				Object: definitionObject(crd.Name), Action: registration.Left, Why: "its objects may be stored in versions that only its conversion webhook can convert",
			})
		}
	}
	return out, nil
}

func definitionObject(name string) string {
	return "customresourcedefinition.apiextensions.k8s.io/" + name
}

func convertsByWebhook(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

func ownsConversion(crd *apiextensionsv1.CustomResourceDefinition, manager string) bool {
	return slices.ContainsFunc(crd.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && foreign.Owns(entry, "f:spec", "f:conversion", "f:webhook")
	})
}
