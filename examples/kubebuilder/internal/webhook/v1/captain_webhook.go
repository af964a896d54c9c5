// SPDX-License-Identifier: Apache-2.0

// Package v1 has the webhooks of fleet.example.com/v1, as kubebuilder scaffolds them.
package v1

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	fleetv1 "github.com/sallyport-io/sallyport/examples/kubebuilder/api/v1"
)

// SetupCaptainWebhookWithManager registers the webhooks in the manager.
func SetupCaptainWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &fleetv1.Captain{}).
		WithValidator(&CaptainCustomValidator{}).
		WithDefaulter(&CaptainCustomDefaulter{DefaultRank: 1}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-fleet-example-com-v1-captain,mutating=true,failurePolicy=fail,sideEffects=None,groups=fleet.example.com,resources=captains,verbs=create;update,versions=v1,name=mcaptain-v1.fleet.example.com,admissionReviewVersions=v1

// CaptainCustomDefaulter sets defaults.
type CaptainCustomDefaulter struct{ DefaultRank int64 }

var _ admission.Defaulter[*fleetv1.Captain] = &CaptainCustomDefaulter{}

// Default implements admission.Defaulter.
func (d *CaptainCustomDefaulter) Default(ctx context.Context, captain *fleetv1.Captain) error {
	logf.FromContext(ctx).V(1).Info("defaulting", "name", captain.GetName())
	if captain.Spec.Rank == nil {
		captain.Spec.Rank = &d.DefaultRank
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-fleet-example-com-v1-captain,mutating=false,failurePolicy=fail,sideEffects=None,groups=fleet.example.com,resources=captains,verbs=create;update;delete,versions=v1,name=vcaptain-v1.fleet.example.com,admissionReviewVersions=v1

// CaptainCustomValidator checks captains.
type CaptainCustomValidator struct{}

var _ admission.Validator[*fleetv1.Captain] = &CaptainCustomValidator{}

// ValidateCreate implements admission.Validator.
func (v *CaptainCustomValidator) ValidateCreate(_ context.Context, captain *fleetv1.Captain) (admission.Warnings, error) {
	var warnings admission.Warnings
	if len(captain.Spec.Crew) == 0 {
		warnings = append(warnings, "spec.crew: a ship without a crew stays in port")
	}
	if rank := captain.Spec.Rank; rank != nil && (*rank < 1 || *rank > 5) {
		return warnings, apierrors.NewInvalid(schema.GroupKind{Group: fleetv1.GroupVersion.Group, Kind: "Captain"}, captain.Name,
			field.ErrorList{field.Invalid(field.NewPath("spec", "rank"), *rank, "must be from 1 to 5")})
	}
	return warnings, nil
}

// ValidateUpdate implements admission.Validator.
func (v *CaptainCustomValidator) ValidateUpdate(ctx context.Context, old, captain *fleetv1.Captain) (admission.Warnings, error) {
	if old.Spec.Ship != captain.Spec.Ship {
		return nil, fmt.Errorf("spec.ship: a captain stays with the ship; make a new captain")
	}
	return v.ValidateCreate(ctx, captain)
}

// ValidateDelete implements admission.Validator.
func (v *CaptainCustomValidator) ValidateDelete(_ context.Context, captain *fleetv1.Captain) (admission.Warnings, error) {
	if len(captain.Spec.Crew) > 0 {
		return nil, fmt.Errorf("spec.crew: a captain leaves last; remove the crew first")
	}
	return nil, nil
}
