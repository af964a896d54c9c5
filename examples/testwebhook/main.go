// SPDX-License-Identifier: Apache-2.0

// Command testwebhook answers as the test webhook of Kubernetes does (`agnhost
// webhook`), at the same paths, and so can take its place in Kubernetes' own suites.
//
// One thing differs on the wire, and nowhere else: /always-allow-delay-5s allows
// without the message "this webhook allows all requests", which the API server ignores.
package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/registration"
)

func main() {
	if err := command().Execute(); err != nil {
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var certFile, keyFile, sidecarImage string
	var port int
	cmd := &cobra.Command{
		Use:   "testwebhook",
		Short: "Answer as the test webhook of Kubernetes does",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			app, err := newApp(sidecarImage, 5*time.Second)
			if err != nil {
				return err
			}
			settings := app.DefaultSettings()
			settings.Registration.Mode = registration.ModeNone
			settings.Certificate = sallyport.CertificateSettings{Source: sallyport.SourceFiles, CertFile: certFile, KeyFile: keyFile}
			settings.Serving.Port = port
			settings.Serving.MetricsBindAddress = "0"
			settings.Serving.DrainMin, settings.Serving.DrainMax = 0, 0 // the suites wait for its end
			return app.RunUntilSignal(cmd.Context(), settings)
		},
		SilenceUsage: true,
	}
	flags := cmd.Flags()
	flags.StringVar(&certFile, "tls-cert-file", "", "`file` with the certificate and its chain, PEM")
	flags.StringVar(&keyFile, "tls-private-key-file", "", "`file` with the key, PEM")
	flags.IntVar(&port, "port", 443, "TCP `port` to listen on")
	flags.StringVar(&sidecarImage, "sidecar-image", "", "`image` of the container that /mutating-pods-sidecar adds")
	return cmd
}

// newApp has all webhooks. Delay is how long /always-allow-delay-5s takes.
func newApp(sidecarImage string, delay time.Duration) (*sallyport.App, error) {
	return sallyport.New("testwebhook", sallyport.WithWebhooks(webhooks(sidecarImage, delay)...))
}
