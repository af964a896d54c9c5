// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/serving"
)

// certificates say with what connections are served: files, or else Secrets.
type certificates struct {
	certFile, keyFile  string
	secret, kubeconfig string
}

// serve answers until ctx ends.
func serve(ctx context.Context, options serving.Options, from certificates) error {
	o := hosting.Options{Serving: options}
	if from.secret == "" {
		o.Certificate = func(certificate.AuthorityOptions) (certificate.Source, error) {
			return certificate.NewFiles(certificate.FilesOptions{CertFile: from.certFile, KeyFile: from.keyFile})
		}
	} else {
		config, err := sallyport.ClientConfig(from.kubeconfig, "testwebhook")
		if err != nil {
			return err
		}
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		secrets := newSecretCertificates(clients, from.secret)
		o.Changed = hosting.NewSignal()
		o.Serving.GetCertificate = secrets.GetCertificate
		o.Parts = []hosting.Part{{Name: "certificate", Ready: secrets.Ready, Run: func(ctx context.Context) error { return secrets.Run(ctx, o.Changed.Send) }}}
	}
	host, err := hosting.New(o)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}
