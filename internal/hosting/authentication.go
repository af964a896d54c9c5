// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// The built-in modes of authentication. An application may add others.
const (
	// AuthenticationNone accepts any caller.
	AuthenticationNone = "none"
	// AuthenticationClientCA requires a client certificate signed by a CA.
	AuthenticationClientCA = "client-ca"
)

// AuthenticationSettings configure who may call admission webhooks. The API server presents
// the credentials that its AdmissionConfiguration names.
type AuthenticationSettings struct {
	// Mode is [AuthenticationNone], [AuthenticationClientCA] or the name of a
	// sallyport.WithAuthentication. Empty means AuthenticationNone.
	Mode string
	// ClientCAFile is the path of the PEM-encoded CA bundle for AuthenticationClientCA. It
	// is reloaded when it changes.
	ClientCAFile string
	// ClientCommonNames are the common names that AuthenticationClientCA accepts. If empty,
	// it accepts every certificate signed by the CA.
	ClientCommonNames []string
	// Metrics selects who may read /metrics: [AuthenticationNone] or the name of a
	// sallyport.WithAuthentication. Empty means AuthenticationNone.
	Metrics string
	// PrivatePaths appends an unguessable segment to the registered paths, and stops
	// serving all others: "true", "false", or [PrivatePathsAuto]. Empty means "false". It
	// excludes callers that cannot read the webhook configurations, but is not
	// authentication. It requires an authority; the segments change with its keys.
	//
	// Other paths are served as long as the API server still calls them, and for two
	// minutes after that, so that the setting can change during a rolling update.
	PrivatePaths string
}

var privatePathsChoices = []string{PrivatePathsAuto, "true", "false"}

// AddFlags binds the settings to flags. Their current values are the defaults. Modes are
// the available modes, see [AuthenticationModes].
func (s *AuthenticationSettings) AddFlags(cmd *cobra.Command, modes []string) {
	flags := cmd.Flags()
	flags.StringVar(&s.Mode, "authentication", cmp.Or(s.Mode, AuthenticationNone),
		"`mode` of authentication of callers of admission webhooks: "+cli.OneOf(modes)+"; with client-ca or delegated, the API server's AdmissionConfiguration must name the credentials to present")
	flags.StringVar(&s.ClientCAFile, "client-ca-file", s.ClientCAFile,
		"with --authentication client-ca: `file` with the PEM-encoded CA bundle that verifies client certificates; reloaded when it changes")
	flags.StringSliceVar(&s.ClientCommonNames, "client-common-names", s.ClientCommonNames,
		"with --authentication client-ca: accepted common `names` of client certificates; if empty, any certificate signed by the CA is accepted")
	metrics := metricsModes(modes)
	flags.StringVar(&s.Metrics, "metrics-authentication", cmp.Or(s.Metrics, AuthenticationNone),
		"`mode` of authentication of readers of /metrics: "+cli.OneOf(metrics)+"; with delegated, the port serves TLS with the certificate of the webhooks, and probes still need no credentials")
	cli.CompleteChoices(cmd, "metrics-authentication", metrics)
	flags.StringVar(&s.PrivatePaths, "private-paths", cmp.Or(s.PrivatePaths, "false"),
		"`mode` of private paths, which have an unguessable segment to protect the webhooks where the API server cannot be configured to authenticate itself: "+
			cli.OneOf(privatePathsChoices)+"; auto uses them if all replicas share an authority and register themselves, unless paths are already registered without the segment")
	flags.Lookup("private-paths").NoOptDefVal = "true"
	cli.CompleteChoices(cmd, "private-paths", privatePathsChoices)
	cli.CompleteChoices(cmd, "authentication", modes)
	cli.CompleteFiles(cmd, "client-ca-file")
}

// AuthenticationModes returns the built-in modes and the given ones.
func AuthenticationModes(others ...string) []string {
	return append([]string{AuthenticationNone, AuthenticationClientCA}, others...)
}

// Validate reports every problem in the flags of AddFlags.
func (s *AuthenticationSettings) Validate(modes []string, serving *serving.Options, certificate *CertificateSettings, r *RegistrationSettings) error {
	errs := []error{choice("authentication", cmp.Or(s.Mode, AuthenticationNone), modes)}
	switch {
	case s.Mode == AuthenticationClientCA && s.ClientCAFile == "":
		errs = append(errs, problemf("%s client-ca requires %s", setting("authentication"), setting("client-ca-file")))
	case s.Mode != AuthenticationClientCA && (s.ClientCAFile != "" || len(s.ClientCommonNames) > 0):
		errs = append(errs, problemf("%s, %s: only valid with %s client-ca", setting("client-ca-file"), setting("client-common-names"), setting("authentication")))
	}
	errs = append(errs, choice("metrics-authentication", cmp.Or(s.Metrics, AuthenticationNone), metricsModes(modes)))
	if address := serving.MetricsBindAddress; delegates(s.Metrics) && (address == "" || address == "0") {
		errs = append(errs, problemf("%s: not valid if %s disables metrics", setting("metrics-authentication"), setting("metrics-bind-address")))
	}
	errs = append(errs, choice("private-paths", cmp.Or(s.PrivatePaths, "false"), privatePathsChoices))
	if s.PrivatePaths == "true" && certificate.Source == SourceFiles {
		errs = append(errs, problemf("%s requires %s authority, whose keys the paths are derived from", setting("private-paths"), setting("certificate-source")))
	}
	if s.PrivatePaths == "true" && r.Mode == registration.ModeNone {
		errs = append(errs, problemf("%s requires %s api: only the server knows the paths", setting("private-paths"), setting("registration")))
	}
	return errors.Join(errs...)
}

// metricsModes are the modes for metrics: scrapers authenticate with a token.
func metricsModes(modes []string) []string {
	return slices.DeleteFunc(slices.Clone(modes), func(mode string) bool { return mode == AuthenticationClientCA })
}

// Delegates reports whether one of the modes is not built in, and therefore asks an API
// server.
func (s *AuthenticationSettings) Delegates() bool { return delegates(s.Mode) || delegates(s.Metrics) }

func delegates(mode string) bool {
	return mode != "" && mode != AuthenticationNone && mode != AuthenticationClientCA
}

// ClientCA authenticates callers by client certificates.
func (s *AuthenticationSettings) ClientCA(logger *slog.Logger, metrics prometheus.Registerer) (*Authentication, error) {
	ca, err := serving.NewClientCA(serving.ClientCAOptions{File: s.ClientCAFile, CommonNames: s.ClientCommonNames, Logger: logger, Registry: metrics})
	if err != nil {
		return nil, problemf("%s: %w", setting("client-ca-file"), err)
	}
	return &Authentication{Authenticate: ca.Authenticate, Run: ca.Run}, nil
}

// SharesAuthority reports whether private paths can be used: all replicas have the same
// keys, and register the paths.
func SharesAuthority(certificate *CertificateSettings, r *RegistrationSettings) bool {
	_, _, shared := certificate.AuthoritySecret(r.Config().Endpoint)
	return shared && r.Mode == registration.ModeAPI
}

// Tell logs once how the webhooks are protected from other callers. Shared is the result of
// [SharesAuthority].
func (s *AuthenticationSettings) Tell(logger *slog.Logger, shared bool) {
	mode := cmp.Or(s.PrivatePaths, PrivatePathsNever)
	switch {
	case cmp.Or(s.Mode, AuthenticationNone) != AuthenticationNone:
	case mode == PrivatePathsNever || mode == PrivatePathsAuto && !shared:
		logger.Warn("any client that reaches the port may call the webhooks, and sees the changes in the responses: " +
			"see --private-paths and --authentication in docs/security.md")
	default:
		logger.Info("callers are not authenticated; only clients that can read the webhook configurations know the paths", "private-paths", mode)
	}
}
