// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/hosting/delegated"
	"github.com/sallyport-io/sallyport/serving"
)

// callers is the effective mode of --webhook-authentication.
func (s *settings) callers() string { return cmp.Or(s.Authentication.Mode, serving.AuthenticationNone) }

// newCallers creates the authenticator of callers; nil accepts any caller.
func (h *host) newCallers() (*hosting.Authentication, error) {
	switch h.settings.callers() {
	case serving.AuthenticationClientCA:
		ca, err := hosting.ClientCA(&h.settings.Authentication, h.log, h.metrics)
		if err != nil {
			return nil, err
		}
		ca.Authenticate = h.telling(ca.Authenticate)
		return ca, nil
	case authenticationDelegated:
		authenticator, err := delegated.New(h.completed.Client)
		if err != nil {
			return nil, fmt.Errorf("--webhook-authentication=Delegated: %w", err)
		}
		authenticator.WhenKnown(h.changed.Send)
		return &hosting.Authentication{Authenticate: h.telling(authenticator.Authenticate), Ready: authenticator.Ready, Run: authenticator.Run}, nil
	}
	return nil, nil
}

// telling logs refused callers at a limited rate: to users of the API server, the webhook
// just seems to fail.
func (h *host) telling(authenticate func(*http.Request) error) func(*http.Request) error {
	often := rate.Sometimes{First: 1, Interval: time.Minute}
	return func(r *http.Request) error {
		err := authenticate(r)
		if errors.Is(err, serving.ErrUnauthenticated) || errors.Is(err, serving.ErrForbidden) {
			often.Do(func() {
				h.log.Warn("a caller was refused; if it is kube-apiserver: the kubeConfigFile of its two webhook plugins must have a user for this address, HOST:PORT, "+
					"whose credentials --webhook-authentication accepts", slog.Any("reason", err), slog.String("address", h.hosting.Server().Addr().String()))
			})
		}
		return err
	}
}
