// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/serving"
)

// certificates say with what connections are served: files, or else Secrets.
type certificates struct {
	certFile, keyFile  string
	secret, kubeconfig string
}

// source is where the certificates come from while it runs.
type source interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Ready() error
	Run(ctx context.Context) error
}

func (c certificates) open() (source, error) {
	if c.secret == "" {
		return certificate.NewFiles(certificate.FilesOptions{CertFile: c.certFile, KeyFile: c.keyFile})
	}
	config, err := sallyport.ClientConfig(c.kubeconfig, "testwebhook")
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return newSecretCertificates(clients, c.secret), nil
}

// serve answers until ctx ends.
func serve(ctx context.Context, options serving.Options, from certificates) error {
	source, err := from.open()
	if err != nil {
		return err
	}
	options.GetCertificate = source.GetCertificate
	options.Checks = []serving.Check{{Name: "certificate", Ready: source.Ready, Gate: true}}
	server, err := serving.New(options)
	if err != nil {
		return err
	}
	below, cancel := context.WithCancel(context.WithoutCancel(ctx))
	group, below := errgroup.WithContext(below)
	group.Go(func() error { return source.Run(below) })
	group.Go(func() error {
		defer cancel()
		serving, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(below, stop)()
		return server.Run(serving)
	})
	return group.Wait()
}
