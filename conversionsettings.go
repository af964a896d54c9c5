// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/wire"
)

// AddConversionFlag adds the flag that says where the API server finds the converters.
func (s *RegistrationSettings) AddConversionFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.ConversionService, "conversion-service", s.ConversionService,
		"the Service by which the API server reaches the converters, `namespace/name[:port]`, with publishNotReadyAddresses: true, "+
			"since what makes the server ready may need objects that it converts; empty for that of --service")
}

// ValidateConversion reports every mistake in --conversion-service.
func (s *RegistrationSettings) ValidateConversion() error {
	if s.ConversionService == "" {
		return nil
	}
	if s.Service == "" {
		return errors.New("--conversion-service: needs --service; a server that is reached by --url converts there")
	}
	service, err := parseService(s.ConversionService)
	if err == nil {
		err = registration.Endpoint{Service: service}.Validate()
	}
	if err != nil {
		return fmt.Errorf("--conversion-service: %w", err)
	}
	return nil
}

// conversionEndpoint is where the converters are, if not with the webhooks.
func (s *RegistrationSettings) conversionEndpoint() *registration.Endpoint {
	service, err := parseService(s.ConversionService)
	if err != nil { // it is empty, or was validated
		return nil
	}
	return &registration.Endpoint{Service: service}
}

// registerConverters adds the definitions of what is converted to what the keeper
// keeps.
func (p *process) registerConverters(options *registration.Options, converters []conversion.Converter, client *rest.Config) error {
	definitions, err := apiextensionsclient.NewForConfig(client)
	if err != nil {
		return err
	}
	options.CRDs = definitions.CustomResourceDefinitions()
	if len(converters) == 0 { // a backstop may need the client
		return nil
	}
	options.Conversions = func() []registration.Conversion {
		path := p.registeredPath(wire.ConversionPath)
		conversions := make([]registration.Conversion, 0, len(converters))
		for _, converter := range converters {
			conversions = append(conversions, conversionOf(converter.CRD(), path))
		}
		return conversions
	}
	options.ConversionCABundle = p.conversionCABundle
	return nil
}

// conversionCABundle is what the API server shall trust for conversion. It is told as
// soon as there is a certificate: converters need nothing else, and what else the
// process stands on may need them.
func (p *process) conversionCABundle() ([]byte, error) {
	errs := []error{p.source.Ready()}
	if p.private != nil {
		errs = append(errs, p.private.ready())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p.source.CABundle(), nil
}
