// SPDX-License-Identifier: Apache-2.0

// Command testwebhook answers as the test webhooks of Kubernetes do (`agnhost webhook`
// and `agnhost crd-conversion-webhook`), at the same paths, and so can take their place
// in Kubernetes' own suites; test/conformance runs these against it.
//
// What differs on the wire: /always-allow-delay-5s allows without the message "this
// webhook allows all requests", which the API server ignores; /crdconvert answers an
// object that has the wanted version already with the object, not with a failure, and
// speaks JSON alone. The API server asks for neither.
package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/serving"
)

func main() {
	if err := command().Execute(); err != nil {
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var sidecarImage string
	cmd := serverCommand("testwebhook", "Answer as the test webhook of Kubernetes does", func() ([]serving.Route, error) {
		app, err := newApp(sidecarImage, 5*time.Second)
		if err != nil {
			return nil, err
		}
		return hosting.Routes(app.Webhooks(), nil, nil, nil)
	})
	cmd.Flags().StringVar(&sidecarImage, "sidecar-image", "", "`image` of the container that /mutating-pods-sidecar adds")
	cmd.AddCommand(serverCommand("crd-conversion-webhook", "Answer as the test webhook of Kubernetes for conversion does", func() ([]serving.Route, error) {
		return []serving.Route{{Path: "/crdconvert", Answer: newAnyKind().answer, Ungated: true}}, nil
	}))
	return cmd
}

// newApp has all webhooks. Delay is how long /always-allow-delay-5s takes.
func newApp(sidecarImage string, delay time.Duration) (*sallyport.App, error) {
	return sallyport.New("testwebhook", sallyport.WithWebhooks(webhooks(sidecarImage, delay)...))
}

// serverCommand serves the routes until a signal ends it.
func serverCommand(name, short string, routes func() ([]serving.Route, error)) *cobra.Command {
	var certificates certificates
	options := serving.DefaultOptions()
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if options.Routes, err = routes(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serve(ctx, options, certificates)
		},
		SilenceUsage: true,
	}
	options.MetricsBindAddress = "0"
	options.DrainMin, options.DrainTimeout = 0, 0 // the suites wait for its end
	flags := cmd.Flags()
	flags.StringVar(&certificates.certFile, "tls-cert-file", "", "`file` with the certificate and its chain, PEM")
	flags.StringVar(&certificates.keyFile, "tls-private-key-file", "", "`file` with the key, PEM")
	flags.StringVar(&certificates.secret, "tls-secret-name", "",
		"`name` of Secrets that hold tls.crt and tls.key, in any namespace, in the place of files: each is presented to who asks for a host that it is for")
	flags.StringVar(&certificates.kubeconfig, "kubeconfig", "", "with --tls-secret-name: `file` that says how to reach the API server; empty for the cluster around")
	flags.Int32Var(&options.SecurePort, "port", 443, "TCP `port` to listen on")
	cmd.MarkFlagsRequiredTogether("tls-cert-file", "tls-private-key-file")
	cmd.MarkFlagsOneRequired("tls-cert-file", "tls-secret-name")
	cmd.MarkFlagsMutuallyExclusive("tls-cert-file", "tls-secret-name")
	return cmd
}
