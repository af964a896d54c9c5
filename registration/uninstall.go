// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"k8s.io/client-go/util/retry"

	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
	"github.com/sallyport-io/sallyport/internal/kube/foreign"
)

// removalAction is the result of a removal.
type removalAction string

const (
	// Deleted means that the object is gone.
	Deleted removalAction = "deleted"
	// Changed means that our part is removed, and the object still exists.
	Changed removalAction = "changed"
	// Left means that the object is unchanged.
	Left removalAction = "left"
)

// Removal is the result for one object. Missing objects have none.
type Removal struct {
	// Object is named as kubectl does, "resource.group/name", or it is a file's path.
	Object string
	Action removalAction
	// Why is empty for Deleted.
	Why string
}

// RemoveOptions choose what to remove.
type RemoveOptions struct {
	// Name of the configurations.
	Name string
	// FieldManager defaults to [DefaultFieldManager].
	FieldManager string
	// DryRun makes the API server check everything, including permissions, and store
	// nothing.
	DryRun bool
}

func (o RemoveOptions) manager() string {
	if o.FieldManager == "" {
		return DefaultFieldManager
	}
	return o.FieldManager
}

func (o RemoveOptions) dryRun() []string {
	if o.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// RemoveConfigurations removes what a [Keeper] of that name wrote: the policy of a backstop
// and its binding, the webhooks that the field manager owns and, if no other webhooks
// remain, the object. Objects without [ManagedByLabel], or without fields of the field
// manager, are left. A running Keeper writes everything again.
//
// On error, the removals are those done before it.
func RemoveConfigurations(ctx context.Context, client admissionregistrationclient.AdmissionregistrationV1Interface, o RemoveOptions) ([]Removal, error) {
	options := Options{Config: Config{Name: o.Name}, Client: client, FieldManager: o.manager()}
	never := func(context.Context) error { return nil }
	var out []Removal
	for _, object := range []removable{ // policies before their parameters and webhooks
		bindingObject(options, never), policyObject(options, never), mutatingObject(options, never), validatingObject(options, never),
	} {
		removal, err := object.uninstall(ctx, o.dryRun())
		if err != nil {
			return out, fmt.Errorf("%s %s: %w", object.kind(), o.Name, err)
		}
		if removal != nil {
			out = append(out, *removal)
		}
	}
	return out, nil
}

// RemoveStaticManifests removes the files that a [Files] of that name wrote below the
// directory, if their objects have [ManagedByLabel].
func RemoveStaticManifests(directory string, o RemoveOptions) ([]Removal, error) {
	if !filepath.IsAbs(directory) {
		return nil, fmt.Errorf("directory %q: must be an absolute path", directory)
	}
	var out []Removal
	for _, folder := range []string{mutatingFolder, validatingFolder} {
		path := filepath.Join(directory, staticPath(folder, o.Name))
		data, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, err
		}
		if !isOurs(data) {
			out = append(out, Removal{path, Left, fmt.Sprintf("its object does not have the label %s=%s", ManagedByLabel, ManagedByValue)})
			continue
		}
		if !o.DryRun {
			if err := os.Remove(path); err != nil {
				return out, err
			}
		}
		out = append(out, Removal{Object: path, Action: Deleted})
	}
	return out, nil
}

// RemoveConversions sets spec.conversion of the definitions to the strategy None, with
// which the API server changes only apiVersion between versions: correct if the versions
// have the same schema, and lossy otherwise. A definition whose conversion webhook the
// field manager does not own is left.
func RemoveConversions(ctx context.Context, client crdclient.Interface, crds []string, o RemoveOptions) ([]Removal, error) {
	var out []Removal
	for _, name := range slices.Compact(slices.Sorted(slices.Values(crds))) {
		var removal *Removal
		// The API server writes the status of definitions at any time.
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
			removal, err = removeConversion(ctx, client, name, o)
			return err
		})
		if err != nil {
			return out, fmt.Errorf("%s %s: %w", definitionKind, name, err)
		}
		if removal != nil {
			out = append(out, *removal)
		}
	}
	return out, nil
}

func removeConversion(ctx context.Context, client crdclient.Interface, name string, o RemoveOptions) (*Removal, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
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
	removal := &Removal{Object: definitionObject(name), Action: Left}
	if !ownsConversion(live, o.manager()) {
		removal.Why = fmt.Sprintf("the field manager %s does not own its conversion webhook", o.manager())
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
	if _, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: o.manager(), DryRun: o.dryRun()}); err != nil {
		return nil, err
	}
	removal.Action, removal.Why = Changed, "its conversion strategy is None"
	return removal, nil
}

// LeftConversions returns the definitions whose conversion webhook the field manager owns.
// It needs permission to list all definitions.
func LeftConversions(ctx context.Context, client crdclient.Interface, o RemoveOptions) ([]Removal, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []Removal
	for i := range list.Items {
		if crd := &list.Items[i]; convertsByWebhook(crd) && ownsConversion(crd, o.manager()) {
			out = append(out, Removal{definitionObject(crd.Name), Left, "its objects may be stored in versions that only its conversion webhook can convert"})
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
