// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"cmp"
	"errors"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// Config is the configuration of registration. The settings must be valid.
func Config(s *registration.Settings) registration.Config {
	config := registration.Config{Name: s.Name, Endpoint: registration.Endpoint{Service: s.Service, URL: s.URL}}
	if s.ConversionService != nil {
		config.ConversionEndpoint = &registration.Endpoint{Service: s.ConversionService}
	}
	return config
}

// Apply returns the definitions with the settings applied.
func Apply(s *registration.Settings, webhooks []admission.Webhook) ([]admission.Webhook, error) {
	selector := selectorOf(s)
	var errs []error
	out := slices.Clone(webhooks)
	for i := range out {
		w := &out[i]
		w.NamespaceSelector = selectors.Both(w.NamespaceSelector, selector)
		excludeOwnPods(s, w)
		w.AllowWedge = cmp.Or(w.AllowWedge, s.AllowWedge)
		w.FailurePolicy = cmp.Or(admissionregistrationv1.FailurePolicyType(s.FailurePolicy), w.FailurePolicy)
		w.TimeoutSeconds = cmp.Or(s.TimeoutSeconds, w.TimeoutSeconds)
		if len(s.ReviewVersions) > 0 {
			w.ReviewVersions = s.ReviewVersions
		}
		if s.Adjust != nil {
			s.Adjust(w)
		}
		errs = append(errs, w.Problems())
	}
	return out, errors.Join(errs...)
}

// selectorOf excludes namespaces that must work without the webhooks, first of all the
// server's own: otherwise it could not be restarted.
func selectorOf(s *registration.Settings) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	if s.NamespaceSelector != nil {
		selector = s.NamespaceSelector.DeepCopy()
	}
	excluded := slices.Clone(s.ExcludedNamespaces)
	if s.Service != nil && !s.SharedNamespace {
		excluded = append(excluded, s.Service.Namespace)
	}
	slices.Sort(excluded)
	if excluded = slices.Compact(excluded); len(excluded) > 0 {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: excluded,
		})
	}
	return selector
}

// Conversions returns the conversion stanzas to register for converters.
func Conversions(converters []conversion.Converter) []registration.Conversion {
	out := make([]registration.Conversion, 0, len(converters))
	for _, converter := range converters {
		out = append(out, ConversionOf(converter.CRD()))
	}
	return out
}

// ConversionOf returns the conversion stanza to register for a definition.
func ConversionOf(crd string) registration.Conversion {
	return registration.Conversion{CRD: crd, Path: wire.ConversionPath, ReviewVersions: reviewversion.All()}
}
