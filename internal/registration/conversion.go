// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsac "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// Conversion is the conversion webhook of a CustomResourceDefinition.
type Conversion struct {
	// CRD is metadata.name of the definition, <plural>.<group>, for example
	// "crontabs.stable.example.com".
	CRD string
	// Path is the URL path of the webhook. It begins with a slash.
	Path string
	// ReviewVersions are the versions of ConversionReview that the webhook accepts, in
	// order of preference. Default v1.
	ReviewVersions []string
}

// Validate reports all problems.
func (c Conversion) Validate() error {
	var errs []error
	add := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("conversion of %q: %s: %s", c.CRD, field, fmt.Sprintf(format, args...)))
	}
	if problems := validation.IsDNS1123Subdomain(c.CRD); len(problems) > 0 {
		add("CRD", "%s", strings.Join(problems, "; "))
	} else if strings.Count(c.CRD, ".") < 1 {
		add("CRD", "must be <plural>.<group>, for example crontabs.stable.example.com")
	}
	if !strings.HasPrefix(c.Path, "/") || strings.ContainsAny(c.Path, "?#") || strings.Contains(c.Path, "//") {
		add("path", "%q must begin with a slash, without query, fragment or empty segments", c.Path)
	}
	reviewversion.Validate(c.ReviewVersions, func(format string, args ...any) { add("reviewVersions", format, args...) })
	return errors.Join(errs...)
}

// buildConversions derives the desired spec.conversion of each definition by name. The
// apply configurations are for existing definitions: they contain only the stanza. caBundle
// is as in [Build].
//
// The error reports all problems of c and of the conversions.
func buildConversions(c Config, conversions []Conversion, caBundle []byte) (map[string]*apiextensionsac.CustomResourceDefinitionApplyConfiguration, error) {
	errs := []error{c.Validate(), validateBundle(caBundle)}
	names := map[string]bool{}
	for _, conversion := range conversions {
		errs = append(errs, conversion.Validate())
		if names[conversion.CRD] {
			errs = append(errs, fmt.Errorf("conversion of %q: duplicate definition", conversion.CRD))
		}
		names[conversion.CRD] = true
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("conversion stanzas cannot be built: %w", err)
	}
	out := make(map[string]*apiextensionsac.CustomResourceDefinitionApplyConfiguration, len(conversions))
	for _, conversion := range conversions {
		out[conversion.CRD] = conversion.stanza(c.conversionEndpoint(), caBundle)
	}
	return out, nil
}

func (c Conversion) stanza(endpoint Endpoint, caBundle []byte) *apiextensionsac.CustomResourceDefinitionApplyConfiguration {
	versions := c.ReviewVersions
	if len(versions) == 0 {
		versions = []string{reviewversion.V1}
	}
	client := apiextensionsac.WebhookClientConfig()
	if s := endpoint.Service; s != nil {
		client.WithService(apiextensionsac.ServiceReference().
			WithNamespace(s.Namespace).WithName(s.Name).WithPort(portOf(s)).WithPath(c.Path))
	} else {
		client.WithURL(endpoint.at(c.Path))
	}
	if len(caBundle) > 0 {
		client.WithCABundle(caBundle...)
	}
	return apiextensionsac.CustomResourceDefinition(c.CRD).
		WithSpec(apiextensionsac.CustomResourceDefinitionSpec().
			WithConversion(apiextensionsac.CustomResourceConversion().
				WithStrategy(apiextensionsv1.WebhookConverter).
				WithWebhook(apiextensionsac.WebhookConversion().
					WithClientConfig(client).
					WithConversionReviewVersions(versions...))))
}
