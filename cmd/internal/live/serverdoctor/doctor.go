// SPDX-License-Identifier: Apache-2.0

// Package serverdoctor has what doctor checks of a server of this program: rights, outage policy, definitions,
// revisions, and whether PodDefaults are applied.
package serverdoctor

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// Options returns doctor's options for servers of this program.
func Options() doctor.Options {
	return doctor.Options{
		Program: serve.Name, Serve: "serve", Discloses: "the contents of PodDefaults", ServiceAccount: serve.Name,
		Rights: func(of *doctor.Installation) ([]runtime.Object, error) {
			config, err := expected(of)
			if err != nil {
				return nil, err
			}
			return serve.InstallRights(config, of.ServiceAccount).Objects(), nil
		},
		Also: func(ctx context.Context, of *doctor.Installation, report *doctor.Report) {
			checkGuard(ctx, of, report)
			checkDefinitions(ctx, of, report)
			checkRevisions(ctx, of, report)
			checkInjection(ctx, of, report)
		},
	}
}

// expected returns the server's presumed configuration: with the registered built-in webhooks,
// or the defaults if none is registered.
func expected(of *doctor.Installation) (*serve.Config, error) {
	config := serve.Default()
	config.Registration.Service, config.Registration.Name = of.Registration.Service, of.Registration.Name
	config.Certificate.AuthoritySecret = of.Certificate.AuthoritySecret
	config.Controllers = nil // it is unknown whether they run, and so which permissions they need
	var registered []string
	for _, b := range serve.Builtins() {
		webhooks, err := b.Default()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(webhooks, func(w admission.Webhook) bool {
			return slices.ContainsFunc(of.Webhooks, func(r cluster.Webhook) bool { return r.Name == w.Name })
		}) {
			registered = append(registered, b.Name)
		}
	}
	if len(registered) > 0 {
		return config, config.Select(registered...)
	}
	return config, nil
}
