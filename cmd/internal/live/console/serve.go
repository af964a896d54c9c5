// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
	"github.com/sallyport-io/sallyport/internal/certificate"
)

// RunLocal serves a local user on a loopback address until ctx ends, and then returns nil. Ready is called
// with the URL of the first page.
func (o *Options) RunLocal(ctx context.Context, address netip.AddrPort, ready func(url string)) error {
	if !address.Addr().IsLoopback() {
		return fmt.Errorf("%s is not a loopback address, and a local console has no authentication", address)
	}
	listener, err := access.Listen(ctx, address)
	if err != nil {
		return err
	}
	o.ending = ctx.Done()
	ready("http://" + listener.Addr().String() + "/")
	return access.Serve(ctx, listener, o.handler(access.Local))
}

// RunBehind serves the users of a proxy on an address until ctx ends, and then returns nil. It accepts
// requests with and without the prefix in their path, because some proxies remove it. Certificate is nil
// for plain HTTP.
func (o *Options) RunBehind(ctx context.Context, proxy *access.Proxy, address netip.AddrPort, prefix string, certificate *certificate.Files, ready func(url string)) error {
	if err := proxy.Validate(); err != nil {
		return err
	}
	listener, err := access.Listen(ctx, address)
	if err != nil {
		return err
	}
	scheme := "http"
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if certificate != nil {
		scheme = "https"
		go func() { _ = certificate.Run(ctx) }() // it returns nil
		config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.GetCertificate, NextProtos: []string{"h2", "http/1.1"}}
		if proxy.ClientCA != nil {
			config.ClientAuth = tls.RequestClientCert // Identify verifies it; probes have none
		}
		listener = tls.NewListener(listener, config)
	}
	if proxy.ClientCA != nil {
		go func() { _ = proxy.ClientCA.Run(ctx) }() // it returns nil
	}
	o.ending = ctx.Done()
	ready(scheme + "://" + listener.Addr().String() + prefix + "/")
	return access.Serve(ctx, listener, access.WithHealth(access.WithoutPrefix(prefix, o.handler(proxy.Identify))))
}
