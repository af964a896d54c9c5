// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type defaultsItself interface {
	runtime.Object
	Default()
}

type validatesItself interface {
	runtime.Object
	ValidateCreate() error
	ValidateUpdate(old runtime.Object) error
	ValidateDelete() error
}

type validatesItselfWithWarnings interface {
	runtime.Object
	ValidateCreate() (ctrladmission.Warnings, error)
	ValidateUpdate(old runtime.Object) (ctrladmission.Warnings, error)
	ValidateDelete() (ctrladmission.Warnings, error)
}

// DefaulterOf returns the defaulter of a type with the method of controller-runtime's
// webhook.Defaulter, which was removed in v0.20, for
// ctrl.NewWebhookManagedBy(mgr, &T{}).WithDefaulter or [Defaulter].
func DefaulterOf[T defaultsItself]() ctrladmission.Defaulter[T] { return itself[T]{} }

// ValidatorOf returns the validator of a type with the methods of controller-runtime's
// webhook.Validator before v0.15, for
// ctrl.NewWebhookManagedBy(mgr, &T{}).WithValidator or [Validator].
func ValidatorOf[T validatesItself]() ctrladmission.Validator[T] { return checksItself[T]{} }

// WarningValidatorOf is [ValidatorOf] for methods that return warnings, as from v0.15 to v0.19.
func WarningValidatorOf[T validatesItselfWithWarnings]() ctrladmission.Validator[T] {
	return warnsItself[T]{}
}

type itself[T defaultsItself] struct{}

func (itself[T]) Default(_ context.Context, object T) error {
	object.Default()
	return nil
}

type checksItself[T validatesItself] struct{}

func (checksItself[T]) ValidateCreate(_ context.Context, object T) (ctrladmission.Warnings, error) {
	return nil, object.ValidateCreate()
}

func (checksItself[T]) ValidateUpdate(_ context.Context, old, object T) (ctrladmission.Warnings, error) {
	return nil, object.ValidateUpdate(old)
}

func (checksItself[T]) ValidateDelete(_ context.Context, object T) (ctrladmission.Warnings, error) {
	return nil, object.ValidateDelete()
}

type warnsItself[T validatesItselfWithWarnings] struct{}

func (warnsItself[T]) ValidateCreate(_ context.Context, object T) (ctrladmission.Warnings, error) {
	return object.ValidateCreate()
}

func (warnsItself[T]) ValidateUpdate(_ context.Context, old, object T) (ctrladmission.Warnings, error) {
	return object.ValidateUpdate(old)
}

func (warnsItself[T]) ValidateDelete(_ context.Context, object T) (ctrladmission.Warnings, error) {
	return object.ValidateDelete()
}
