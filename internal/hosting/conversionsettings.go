// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
	"github.com/sallyport-io/sallyport/registration"
)

// AddConversionFlag adds the flag for the Service of the converters.
func (s *RegistrationSettings) AddConversionFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.ConversionService, "conversion-service", s.ConversionService,
		"the Service through which the API server calls the converters, `namespace/name[:port]`, with publishNotReadyAddresses: true, "+
			"since the server may need converted objects to become ready; defaults to --service")
}

// ValidateConversion reports every problem in --conversion-service.
func (s *RegistrationSettings) ValidateConversion() error {
	if s.ConversionService == "" {
		return nil
	}
	if s.Service == "" {
		return problemf("%s: requires %s; with %s, converters are called there too", setting("conversion-service"), setting("service"), setting("url"))
	}
	service, err := ParseService(s.ConversionService)
	if err == nil {
		err = registration.Endpoint{Service: service}.Validate()
	}
	if err != nil {
		return problemf("%s: %w", setting("conversion-service"), err)
	}
	return nil
}

// conversionEndpoint returns the endpoint of the converters, or nil if it is the webhooks'
// endpoint.
func (s *RegistrationSettings) conversionEndpoint() *registration.Endpoint {
	service, err := ParseService(s.ConversionService)
	if err != nil { // empty, since it is validated
		return nil
	}
	return &registration.Endpoint{Service: service}
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
