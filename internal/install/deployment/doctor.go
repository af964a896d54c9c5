// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/doctor"
	"github.com/sallyport-io/sallyport/internal/server"
)

// Doctor is what the command doctor knows about servers of this program.
func Doctor() doctor.Options {
	return doctor.Options{
		Program: server.Name, Serve: "serve", Discloses: "the contents of PodDefaults", ServiceAccount: server.Name,
		Rights: func(of *doctor.Installation) ([]runtime.Object, error) {
			config, err := expected(of)
			if err != nil {
				return nil, err
			}
			return Rights(config, of.ServiceAccount).Objects(), nil
		},
		Also: checkGuard,
	}
}

// expected is the configuration that the server seems to have: with the ready-made webhooks that
// are registered, or those by default if none is.
func expected(of *doctor.Installation) (*server.Config, error) {
	config := server.Default()
	config.Registration.Service, config.Registration.Name = of.Registration.Service, of.Registration.Name
	config.Certificate.AuthoritySecret = of.Certificate.Secret
	config.Controllers = nil // whether they run is unknown, and so are the rights that they need
	var registered []string
	for _, b := range server.Builtins() {
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
