// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/registration"
)

// AddConversionFlag adds the flag that says where the API server finds the converters.
func (s *RegistrationSettings) AddConversionFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.ConversionService, "conversion-service", s.ConversionService,
		"the Service by which the API server reaches the converters, `namespace/name[:port]`, with publishNotReadyAddresses: true, "+
			"since what makes the server ready may need objects that it converts; empty for that of --service")
}

// ValidateConversion reports every problem in --conversion-service.
func (s *RegistrationSettings) ValidateConversion() error {
	if s.ConversionService == "" {
		return nil
	}
	if s.Service == "" {
		return problemf("%s: needs %s; a server that is reached by %s converts there", setting("conversion-service"), setting("service"), setting("url"))
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

// conversionEndpoint is where the converters are, if not with the webhooks.
func (s *RegistrationSettings) conversionEndpoint() *registration.Endpoint {
	service, err := ParseService(s.ConversionService)
	if err != nil { // it is empty, or was validated
		return nil
	}
	return &registration.Endpoint{Service: service}
}

// Conversions are what is registered for converters.
func Conversions(converters []conversion.Converter) []registration.Conversion {
	out := make([]registration.Conversion, 0, len(converters))
	for _, converter := range converters {
		out = append(out, ConversionOf(converter.CRD()))
	}
	return out
}

// ConversionOf is what is registered for a definition.
func ConversionOf(crd string) registration.Conversion {
	return registration.Conversion{CRD: crd, Path: wire.ConversionPath, ReviewVersions: []string{"v1", "v1beta1"}}
}
