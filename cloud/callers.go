// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

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
		return callers{authenticate: ca.Authenticate, run: ca.Run}, nil
	case authenticationDelegated:
		authenticator, err := delegated.New(h.completed.Client)
		if err != nil {
			return callers{}, fmt.Errorf("--webhook-authentication=delegated: %w", err)
		}
		return callers{authenticator.Authenticate, authenticator.Ready, authenticator.Run}, nil
	}
	return callers{}, nil
}
