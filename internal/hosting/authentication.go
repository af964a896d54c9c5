// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// AuthenticationModes returns the built-in modes and the given ones.
func AuthenticationModes(others ...string) []string {
	return append([]string{serving.AuthenticationNone, serving.AuthenticationClientCA}, others...)
}

// Delegates reports whether one of the modes is not built in, and therefore asks an API
// server.
func Delegates(s *serving.AuthenticationSettings) bool {
	return delegates(s.Mode) || delegates(s.Metrics)
}

func delegates(mode string) bool {
	return mode != serving.AuthenticationNone && mode != serving.AuthenticationClientCA
}

// ClientCA authenticates callers by client certificates.
func ClientCA(s *serving.AuthenticationSettings, logger *slog.Logger, metrics prometheus.Registerer) (*Authentication, error) {
	ca, err := serving.NewClientCA(serving.ClientCAOptions{File: s.ClientCAFile, CommonNames: s.ClientCommonNames, Logger: logger, Registry: metrics})
	if err != nil {
		return nil, &setting.Problem{Field: "authentication.clientCAFile", Err: err}
	}
	return &Authentication{Authenticate: ca.Authenticate, Run: ca.Run}, nil
}

// SharesAuthority reports whether private paths can be used: all replicas have the same
// keys, and register the paths.
func SharesAuthority(c *certificate.Settings, r *registration.Settings) bool {
	_, _, shared := AuthoritySecret(c, Config(r).Endpoint)
	return shared && r.Mode == registration.ModeAPI
}

// Tell logs once how the webhooks are protected from other callers. Shared is the result of
// [SharesAuthority].
func Tell(s *serving.AuthenticationSettings, logger *slog.Logger, shared bool) {
	mode := s.PrivatePaths
	switch {
	case s.Mode != serving.AuthenticationNone:
	case mode == PrivatePathsNever || mode == PrivatePathsAuto && !shared:
		logger.Warn("any client that reaches the port may call the webhooks, and sees the changes in the responses: " +
			"see --private-paths and --authentication in docs/security.md")
	default:
		logger.Info("callers are not authenticated; only clients that can read the webhook configurations know the paths", "private-paths", mode)
	}
}
