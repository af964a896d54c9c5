// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli/application"
	"github.com/sallyport-io/sallyport/internal/wire"
)

// WithConverters adds conversion of CustomResourceDefinitions, one converter per kind.
// It is served at /convert, [wire.ConversionPath], as soon as there is a certificate:
// before components are ready and before the controllers' caches, which may depend on
// converted objects.
func WithConverters(converters ...conversion.Converter) Option {
	return func(a *App) {
		a.converters, a.checkConversions = append(a.converters, converters...), application.Convert
	}
}

// Converters returns the converters, given or derived from types.
func (a *App) Converters() []conversion.Converter {
	return append([]conversion.Converter(nil), a.converters...)
}

// convertersOf returns the converter of an implementation's kind if it is a hub or a
// spoke and there is none yet. Known reports whether it is either.
func (a *App) convertersOf(scheme *runtime.Scheme, implementation any) (known bool, err error) {
	plural := ""
	if t, ok := implementation.(Type); ok {
		implementation, plural = t.Implementation, t.Resource
	}
	value := reflect.ValueOf(implementation)
	if !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return false, nil
	}
	_, hub := implementation.(conversion.Hub)
	_, spoke := implementation.(conversion.Convertible)
	if !hub && !spoke {
		return false, nil
	}
	converter := conversion.ForKind(scheme, implementation.(runtime.Object))
	if plural != "" {
		converter = converter.WithPlural(plural)
	}
	if err := converter.Problems(); err != nil {
		return true, err
	}
	for _, other := range a.derived {
		if other == converter.Kind().String() {
			return true, nil
		}
	}
	a.derived = append(a.derived, converter.Kind().String())
	WithConverters(converter)(a)
	return true, nil
}

// checkConverters checks that each kind has one converter that knows all versions in
// the application's schemes, so that every version converts to every other.
func checkConverters(a *App) {
	schemes := a.schemes
	if a.scheme != nil {
		schemes = append(schemes[:len(schemes):len(schemes)], a.scheme)
	}
	for i, converter := range a.converters {
		if err := converter.Problems(); err != nil {
			a.problems = append(a.problems, err)
			continue
		}
		for _, scheme := range schemes {
			var versions []string
			for _, version := range scheme.VersionsForGroupKind(converter.Kind()) {
				if version.Version != runtime.APIVersionInternal {
					versions = append(versions, version.Version)
				}
			}
			if err := converter.Covers(versions...); err != nil {
				a.problems = append(a.problems, err)
				break
			}
		}
		for j, other := range a.converters[:i] {
			if other.Kind() == converter.Kind() {
				a.problem("two converters are for kind %s: number %d and number %d", converter.Kind(), j+1, i+1)
			}
		}
	}
	if len(a.converters) > 0 {
		for _, webhook := range a.webhooks {
			if webhook.Path == wire.ConversionPath {
				a.problem("webhook %q: path: %s is that of the converters", webhook.Name, webhook.Path)
			}
		}
	}
}
