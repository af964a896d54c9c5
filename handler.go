// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"crypto/tls"
	"errors"
	"net/http"
	"slices"

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/serving"
)

// Handler serves reviews from your own server: POST requests to the paths of the
// webhooks, with the limits, deadlines and metrics of the application's server, but
// without certificate, manager or cluster. It also serves /livez and /readyz. TLS,
// draining and read timeouts are up to your server.
//
// Start options from [serving.DefaultOptions]. Handler sets routes, checks and
// certificate. It runs no components, controllers and caches; [App.Run] does. Webhooks
// that components declare are served: their handlers must return an error, which is a
// fault, until the component runs. Reading a [Cache] is such an error unless the context
// of the request has a cache: in tests, that of sallyporttest.CacheContext. A component
// that declares nothing is an error, because its webhooks are unknown.
func (a *App) Handler(options serving.Options) (http.Handler, error) {
	if slices.ContainsFunc(a.components, func(c component) bool { return !c.declares }) {
		return nil, errors.New("a component provides its webhooks when it is built: declare them with WithComponent, or use Run")
	}
	if len(a.webhooks)+len(a.converters) == 0 {
		return nil, errors.New("the application has no webhooks and no converters")
	}
	if options.Registry == nil {
		options.Registry = newMetricsRegistry(false)
	}
	var err error
	if options.Routes, err = hosting.Routes(a.webhooks, a.converters, options.Logger, options.Registry); err != nil {
		return nil, err
	}
	options.Checks, options.LiveChecks = nil, nil
	options.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return nil, errors.New("a handler has no certificate")
	}
	server, err := serving.New(options)
	if err != nil {
		return nil, err
	}
	return server.Handler(), nil
}
