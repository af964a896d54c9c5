// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/certificate"
	registrations "github.com/sallyport-io/sallyport/internal/registration"
)

// serveLibrary is an application as a webhook author writes it, with the limits,
// metrics and checks that it has by default.
func serveLibrary(args []string) error {
	o, err := parseServerFlags("library", args)
	if err != nil {
		return err
	}
	adder, err := newAdder()
	if err != nil {
		return err
	}
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"))
	converters, err := converters()
	if err != nil {
		return err
	}
	app, err := sallyport.New("library", sallyport.WithConverters(converters...), sallyport.WithWebhooks(
		admission.Mutating("add.bench.sallyport.io", pods, admission.MutateWith(adder), admission.AtPath(addPath)),
		admission.Mutating("nothing.bench.sallyport.io", pods, admission.MutateWith(idle{}), admission.AtPath(nothingPath)),
		admission.Validating("validate.bench.sallyport.io", pods, admission.Validate(checkImages), admission.AtPath(validatePath)),
	))
	if err != nil {
		return err
	}
	settings := app.DefaultSettings()
	settings.Registration.Mode = registrations.ModeNone
	settings.Certificate.Source = certificate.SourceFiles
	settings.Certificate.CertFile, settings.Certificate.PrivateKeyFile = filepath.Join(o.certDir, certFile), filepath.Join(o.certDir, keyFile)
	settings.Serving.BindAddress, settings.Serving.SecurePort, settings.Serving.MetricsBindAddress = "127.0.0.1", int32(o.port), "0"
	endWithParent()
	return app.RunUntilSignal(context.Background(), settings)
}
