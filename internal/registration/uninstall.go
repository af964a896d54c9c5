// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
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
	// DryRun makes the API server check everything, including permissions, and store nothing.
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

// RemoveConfigurations removes what a [Controller] of that name wrote: the policy of a backstop
// and its binding, the webhooks that the field manager owns and, if no other webhooks
// remain, the object. Objects without [ManagedByLabel], or without fields of the field
// manager, are left. A running Controller writes everything again.
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
