// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting/typed"
)

// WithTypes adds the webhooks of API types. Each implementation is an API type that
// defaults or validates itself, a defaulter or validator of one as kubebuilder
// scaffolds them, or a [Type] around either. The API types must be in the scheme.
//
// WithTypes looks for methods with controller-runtime's signatures. T is the API type
// (or runtime.Object, for a type that implements them itself) and W any []string:
//
//	Default(ctx context.Context, object T) error
//	ValidateCreate(ctx context.Context, object T) (W, error)
//	ValidateUpdate(ctx context.Context, old, object T) (W, error)
//	ValidateDelete(ctx context.Context, object T) (W, error)
//
// It also finds the older methods of API types that default or validate themselves
// (webhook.Defaulter and webhook.Validator, in controller-runtime until v0.19):
//
//	Default()
//	ValidateCreate() error                   or (W, error)
//	ValidateUpdate(old runtime.Object) error or (W, error)
//	ValidateDelete() error                   or (W, error)
//
// It registers exactly the methods that exist, at the paths that controller-runtime
// generates: Default for CREATE and UPDATE at /mutate-<group>-<version>-<kind>, the
// others for their operation at /validate-<group>-<version>-<kind>. The kind of a
// [conversion.Hub] or [conversion.Convertible] is converted at /convert, once and
// between all versions in the scheme. A type with none of these is an error, and so is
// a method with one of these names and another signature.
func WithTypes(scheme *runtime.Scheme, implementations ...any) Option {
	return func(a *App) {
		if scheme == nil {
			a.problem("types: the scheme is missing")
			return
		}
		a.schemes = append(a.schemes, scheme)
		for i, implementation := range implementations {
			converts, err := a.convertersOf(scheme, implementation)
			if err != nil {
				a.problem("type %d, %T: %w", i+1, implementation, err)
			}
			if t, ok := implementation.(Type); ok && t.Resource != "" {
				a.plurals = append(a.plurals, t.Resource)
			}
			webhooks, err := webhooksOf(scheme, implementation)
			if converts && errors.Is(err, typed.ErrNone) {
				continue
			}
			if err != nil {
				a.problem("type %d, %T: %w", i+1, implementation, err)
			}
			a.webhooks = append(a.webhooks, webhooks...)
		}
	}
}

// Type configures an implementation for [WithTypes].
type Type struct {
	Implementation any
	// Resource is the plural of the kind, if it differs from the guess ("crontabs" for
	// CronTab, "policies" for Policy).
	Resource string
	// Options apply to the webhooks of the type.
	Options []admission.WebhookOption
}

// webhooksOf returns the webhooks that a value implements.
func webhooksOf(scheme *runtime.Scheme, implementation any) ([]admission.Webhook, error) {
	t, ok := implementation.(Type)
	if !ok {
		t = Type{Implementation: implementation}
	}
	value := reflect.ValueOf(t.Implementation)
	if !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil, errors.New("is nil")
	}
	m, err := typed.MethodsOf(value)
	if err != nil {
		return nil, err
	}
	gvk, err := kindOf(scheme, m.Object)
	if err != nil {
		return nil, err
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	if t.Resource != "" {
		resource.Resource = t.Resource
	}

	var webhooks []admission.Webhook
	options := []admission.HandlerOption{admission.As(m.Object), admission.ForKind(gvk), admission.ErrorsDeny()}
	if m.Mutate != nil {
		handler := admission.Mutate(m.Mutate.OfOne(), options...)
		webhooks = append(webhooks, admission.Mutating(webhookName("default", gvk), admission.Rules(resource),
			admission.Named(fmt.Sprintf("%T", t.Implementation), handler), t.options(generatedPath("mutate", gvk))...))
	}
	if operations := m.Operations(); len(operations) > 0 {
		handler := admission.ValidateEach(m.Checks(), options...)
		webhooks = append(webhooks, admission.Validating(webhookName("validate", gvk), admission.Rules(resource, operations...),
			handler, t.options(generatedPath("validate", gvk))...))
	}
	return webhooks, nil
}

func (t Type) options(path string) []admission.WebhookOption {
	return append([]admission.WebhookOption{admission.AtPath(path)}, t.Options...)
}

// generatedPath returns the path that controller-runtime generates (pkg/builder). The
// core group results in two dashes.
func generatedPath(what string, gvk schema.GroupVersionKind) string {
	return "/" + what + "-" + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
}

func webhookName(what string, gvk schema.GroupVersionKind) string {
	group := gvk.Group
	if group == "" {
		group = "core"
	}
	return what + "." + gvk.Version + "." + strings.ToLower(gvk.Kind) + "." + group
}

// kindOf returns the kind of a type, which must be in the scheme exactly once.
func kindOf(scheme *runtime.Scheme, object runtime.Object) (schema.GroupVersionKind, error) {
	kinds, unversioned, err := scheme.ObjectKinds(object)
	switch {
	case runtime.IsNotRegisteredError(err):
		return schema.GroupVersionKind{}, fmt.Errorf("%T is not in the scheme: add it with its package's AddToScheme", object)
	case err != nil:
		return schema.GroupVersionKind{}, err
	case unversioned:
		return schema.GroupVersionKind{}, fmt.Errorf("%T has no version", object)
	case len(kinds) > 1:
		return schema.GroupVersionKind{}, fmt.Errorf("%T stands for several kinds (%v): define its webhooks with admission.Mutating and Validating", object, kinds)
	}
	return kinds[0], nil
}
