// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net"

	"k8s.io/client-go/rest"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// client returns the configuration of the server's client. Without one it returns a client
// that reaches nothing if the server needs none, and otherwise an error.
func (c *Config) client(version string) (config *rest.Config, none bool, err error) {
	config, err = frontdoor.ClientConfig(c.Kubeconfig, Name+"/"+version)
	if err == nil || c.Kubeconfig != "" || c.needsCluster() {
		return config, false, err
	}
	return &rest.Config{Host: "https://no-kubeconfig.invalid", Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNoCluster }}, true, nil
}

var errNoCluster = errors.New("the server was started without a client: set --kubeconfig and restart it")

// needsCluster reports whether something calls the API server: the registration, the
// authority's Secret, the authentication of callers, or a webhook that is enabled.
func (c *Config) needsCluster() bool {
	settings := c.AppRegistration()
	if _, _, inSecret := hosting.AuthoritySecret(&c.Certificate, hosting.Config(&settings).Endpoint); inSecret {
		return true
	}
	if settings.Mode == registration.ModeAPI || c.Authentication.Mode == AuthenticationDelegated || c.Authentication.Metrics == AuthenticationDelegated {
		return true
	}
	for _, b := range c.Enabled() {
		if b.watch != nil {
			return true
		}
	}
	return false
}

// unreachable returns an error for a webhook that reads from a cluster, if there is none.
func (b *liveBuiltin) unreachable() error {
	if !b.config.noCluster || b.Builtin.watch == nil {
		return nil
	}
	return fmt.Errorf("webhook %s reads from the cluster: %w", b.Name, errNoCluster)
}
