// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/serving"
)

// Handler answers reviews for a server of one's own: at the paths of the webhooks, to
// POST requests, with the limits, deadlines and metrics that the application's own
// server would have, but without certificate, manager, or cluster. /livez and /readyz
// are answered too. What is needed for TLS, draining and the time a client may take
// is that server's business.
//
// Options are as [serving.DefaultOptions] gives them; their routes, checks and
// certificate are set here. Components and controllers need [App.Run]: an application
// that has components or caches cannot be a handler.
func (a *App) Handler(options serving.Options) (http.Handler, error) {
	if len(a.components) > 0 {
		return nil, errors.New("the application has components, which must run: use Run")
	}
	if len(a.kinds) > 0 {
		return nil, errors.New("the application has a cache, which must be filled: use Run")
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
