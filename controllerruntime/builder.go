// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Manager is controller-runtime's, so that a file with webhooks of an older release needs no
// other import than this package in place of controller-runtime.
type Manager = manager.Manager

// WebhookBuilder builds webhooks of a manager as controller-runtime's builder did until
// v0.22. It registers them with controller-runtime's own builder.
type WebhookBuilder struct {
	manager   Manager
	object    runtime.Object
	defaulter ctrladmission.Defaulter[runtime.Object]
	options   []ctrladmission.DefaulterOption
	validator ctrladmission.Validator[runtime.Object]
}

// NewWebhookManagedBy keeps a line of older releases as it is:
//
//	ctrl.NewWebhookManagedBy(mgr).For(r).Complete()
//
// The type gets a defaulting webhook if it has the method of webhook.Defaulter, and a
// validating one if it has those of webhook.Validator, which controller-runtime v0.20
// removed, with or without warnings; and as ever a conversion webhook if it is a hub or a
// spoke.
func NewWebhookManagedBy(mgr Manager) *WebhookBuilder { return &WebhookBuilder{manager: mgr} }

// For sets the type of the webhooks.
func (b *WebhookBuilder) For(object runtime.Object) *WebhookBuilder {
	b.object = object
	return b
}

// WithDefaulter sets a defaulter for any object (webhook.CustomDefaulter), in place of the
// type's own method.
func (b *WebhookBuilder) WithDefaulter(defaulter ctrladmission.Defaulter[runtime.Object], options ...ctrladmission.DefaulterOption) *WebhookBuilder {
	b.defaulter, b.options = defaulter, options
	return b
}

// WithValidator sets a validator for any object (webhook.CustomValidator), in place of the
// type's own methods.
func (b *WebhookBuilder) WithValidator(validator ctrladmission.Validator[runtime.Object]) *WebhookBuilder {
	b.validator = validator
	return b
}

// Complete registers the webhooks.
func (b *WebhookBuilder) Complete() error {
	theirs := builder.WebhookManagedBy(b.manager, b.object)
	if _, ok := b.object.(defaultsItself); ok && b.defaulter == nil {
		b.defaulter = itself{}
	}
	if b.defaulter != nil {
		theirs = theirs.WithCustomDefaulter(b.defaulter, b.options...) //nolint:staticcheck // the other one needs the type at compile time
	}
	if b.validator == nil {
		switch b.object.(type) {
		case validatesItself:
			b.validator = checksItself{}
		case validatesItselfWithWarnings:
			b.validator = warnsItself{}
		}
	}
	if b.validator != nil {
		theirs = theirs.WithCustomValidator(b.validator) //nolint:staticcheck // likewise
	}
	return theirs.Complete()
}

type defaultsItself interface{ Default() }

type validatesItself interface {
	ValidateCreate() error
	ValidateUpdate(old runtime.Object) error
	ValidateDelete() error
}

type validatesItselfWithWarnings interface {
	ValidateCreate() (ctrladmission.Warnings, error)
	ValidateUpdate(old runtime.Object) (ctrladmission.Warnings, error)
	ValidateDelete() (ctrladmission.Warnings, error)
}

// Each of these gets objects of the type that has been looked at.

type itself struct{}

func (itself) Default(_ context.Context, object runtime.Object) error {
	object.(defaultsItself).Default()
	return nil
}

type checksItself struct{}

func (checksItself) ValidateCreate(_ context.Context, object runtime.Object) (ctrladmission.Warnings, error) {
	return nil, object.(validatesItself).ValidateCreate()
}

func (checksItself) ValidateUpdate(_ context.Context, old, object runtime.Object) (ctrladmission.Warnings, error) {
	return nil, object.(validatesItself).ValidateUpdate(old)
}

func (checksItself) ValidateDelete(_ context.Context, object runtime.Object) (ctrladmission.Warnings, error) {
	return nil, object.(validatesItself).ValidateDelete()
}

type warnsItself struct{}

func (warnsItself) ValidateCreate(_ context.Context, object runtime.Object) (ctrladmission.Warnings, error) {
	return object.(validatesItselfWithWarnings).ValidateCreate()
}

func (warnsItself) ValidateUpdate(_ context.Context, old, object runtime.Object) (ctrladmission.Warnings, error) {
	return object.(validatesItselfWithWarnings).ValidateUpdate(old)
}

func (warnsItself) ValidateDelete(_ context.Context, object runtime.Object) (ctrladmission.Warnings, error) {
	return object.(validatesItselfWithWarnings).ValidateDelete()
}
