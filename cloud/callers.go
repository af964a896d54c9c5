// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/sallyport-io/sallyport/serving"
	"github.com/sallyport-io/sallyport/serving/delegated"
)

// callers tell who may call; the zero value lets everybody call.
type callers struct {
	authenticate func(*http.Request) error
	ready        func() error
	run          func(ctx context.Context) error
}

// callers is the way by which --webhook-authentication has it told.
func (s *settings) callers() string { return cmp.Or(s.authentication, authenticationNone) }

func (h *host) newCallers() (callers, error) {
	switch h.settings.callers() {
	case authenticationClientCA:
		ca, err := serving.NewClientCA(serving.ClientCAOptions{
			File: h.settings.clientCAFile, CommonNames: h.settings.clientCommonNames, Logger: h.log, Registry: h.metrics,
		})
		if err != nil {
			return callers{}, fmt.Errorf("--webhook-client-ca-file: %w", err)
		}
		return callers{authenticate: h.telling(ca.Authenticate), run: ca.Run}, nil
	case authenticationDelegated:
		authenticator, err := delegated.New(h.completed.Client)
		if err != nil {
			return callers{}, fmt.Errorf("--webhook-authentication=delegated: %w", err)
		}
		return callers{h.telling(authenticator.Authenticate), authenticator.Ready, authenticator.Run}, nil
	}
	return callers{}, nil
}

// telling has the operator know of callers that are refused, now and then: to the API
// server's users they look like a webhook that fails.
func (h *host) telling(authenticate func(*http.Request) error) func(*http.Request) error {
	often := rate.Sometimes{First: 1, Interval: time.Minute}
	return func(r *http.Request) error {
		err := authenticate(r)
		if errors.Is(err, serving.ErrUnauthenticated) || errors.Is(err, serving.ErrForbidden) {
			often.Do(func() {
				h.log.Warn("a caller was refused; if it is kube-apiserver: the kubeConfigFile of its two webhook plugins must have a user named as this address "+
					"is called, HOST:PORT, whom --webhook-authentication lets in", slog.Any("reason", err), slog.String("address", h.server.Addr().String()))
			})
		}
		return err
	}
}
