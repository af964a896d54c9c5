// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/serving"
)

// Routes returns the routes of webhooks and converters. Logger and registry may be nil.
func Routes(webhooks []admission.Webhook, converters []conversion.Converter, logger *slog.Logger, registry prometheus.Registerer) ([]serving.Route, error) {
	var metrics *wire.Metrics
	var err error
	if registry != nil {
		if metrics, err = wire.NewMetrics(registry); err != nil {
			return nil, err
		}
	}
	var routes []serving.Route
	if len(converters) > 0 {
		handler, err := wire.NewConversion(converters, wire.ConversionOptions{Logger: logger, Metrics: metrics})
		if err != nil {
			return nil, fmt.Errorf("conversion: %w", err)
		}
		// Converters do not wait for readiness: without conversion, nothing can read custom
		// resources, least of all this program's own caches. The API server sends no
		// credentials to converters.
		routes = append(routes, serving.Route{Path: wire.ConversionPath, Answer: answers(handler.Answer), Ungated: true, Anonymous: true})
	}
	for _, webhook := range webhooks {
		handler, err := wire.NewAdmission(webhook, wire.AdmissionOptions{Logger: logger, Metrics: metrics})
		if err != nil {
			return nil, err
		}
		routes = append(routes, serving.Route{Path: webhook.Path, Answer: answers(handler.Answer), Flow: wire.AdmissionFlow})
	}
	return routes, nil
}

// answers returns the function of a route for reviews. Its handlers may yield their seat while they
// wait.
func answers(answer func(context.Context, http.ResponseWriter, http.Header, []byte)) func(context.Context, http.ResponseWriter, serving.Call) {
	return func(ctx context.Context, w http.ResponseWriter, call serving.Call) {
		answer(admission.WithYield(ctx, call.Yield), w, call.Request.Header, call.Body)
	}
}
