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

// Who may call. An application may have others.
const (
	// AuthenticationNone accepts any caller.
	AuthenticationNone = "none"
	// AuthenticationClientCA wants a client certificate of a CA.
	AuthenticationClientCA = "client-ca"
)

// AuthenticationSettings say who may call admission webhooks. The API server shows who
// it is if its AdmissionConfiguration says so.
type AuthenticationSettings struct {
	// Mode is [AuthenticationNone], [AuthenticationClientCA] or the name of a
	// sallyport.WithAuthentication. Empty means AuthenticationNone.
	Mode string
	// ClientCAFile is for AuthenticationClientCA: who signs callers' certificates, PEM.
	// It is read again when it changes.
	ClientCAFile string
	// ClientCommonNames are for AuthenticationClientCA: those who may call; empty for
	// all whose certificate was signed.
	ClientCommonNames []string
	// Metrics says who may read /metrics: [AuthenticationNone] or the name of a
	// sallyport.WithAuthentication. Empty means AuthenticationNone.
	Metrics string
	// PrivatePaths says whether a segment that cannot be guessed is appended to the
	// paths that are registered, and no others are answered: "true", "false", or
	// [PrivatePathsAuto]. Empty means "false". It keeps out who cannot read the webhook
	// configurations; it is no authentication. It needs an authority, with whose keys
	// the segments change.
	//
	// Other paths are answered as long as the API server still calls them, and for
	// two minutes after, so that the setting can change while servers run.
	PrivatePaths string
}

var privatePathsChoices = []string{PrivatePathsAuto, "true", "false"}

// AddFlags binds the settings to flags. The values they have now are the defaults. Modes
// are those that there are, see [AuthenticationModes].
func (s *AuthenticationSettings) AddFlags(cmd *cobra.Command, modes []string) {
	flags := cmd.Flags()
	flags.StringVar(&s.Mode, "authentication", cmp.Or(s.Mode, AuthenticationNone),
		"`who` may call admission webhooks: "+cli.OneOf(modes)+"; the API server's AdmissionConfiguration must say how it shows who it is")
	flags.StringVar(&s.ClientCAFile, "client-ca-file", s.ClientCAFile,
		"with --authentication client-ca: `file` with the CA of callers' certificates, PEM; read again when it changes")
	flags.StringSliceVar(&s.ClientCommonNames, "client-common-names", s.ClientCommonNames,
		"with --authentication client-ca: common `names` of those who may call; empty for all whom the CA has signed")
	metrics := metricsModes(modes)
	flags.StringVar(&s.Metrics, "metrics-authentication", cmp.Or(s.Metrics, AuthenticationNone),
		"`who` may read /metrics: "+cli.OneOf(metrics)+"; other than none, the port speaks TLS with the certificate of the webhooks, and the probes stay open")
	cli.CompleteChoices(cmd, "metrics-authentication", metrics)
	flags.StringVar(&s.PrivatePaths, "private-paths", cmp.Or(s.PrivatePaths, "false"),
		"`whether` a segment that cannot be guessed is appended to the paths that are registered, a fence where the API server cannot be told to show who it is: "+
			cli.OneOf(privatePathsChoices)+"; auto does where all replicas share an authority and register themselves, unless paths are registered without")
	flags.Lookup("private-paths").NoOptDefVal = "true"
	cli.CompleteChoices(cmd, "private-paths", privatePathsChoices)
	cli.CompleteChoices(cmd, "authentication", modes)
	cli.CompleteFiles(cmd, "client-ca-file")
}

// AuthenticationModes are the built-in modes, and others.
func AuthenticationModes(others ...string) []string {
	return append([]string{AuthenticationNone, AuthenticationClientCA}, others...)
}

// Validate reports every problem in the flags of AddFlags.
func (s *AuthenticationSettings) Validate(modes []string, serving *serving.Options, certificate *CertificateSettings, r *RegistrationSettings) error {
	errs := []error{choice("authentication", cmp.Or(s.Mode, AuthenticationNone), modes)}
	switch {
	case s.Mode == AuthenticationClientCA && s.ClientCAFile == "":
		errs = append(errs, problemf("%s client-ca needs %s", setting("authentication"), setting("client-ca-file")))
	case s.Mode != AuthenticationClientCA && (s.ClientCAFile != "" || len(s.ClientCommonNames) > 0):
		errs = append(errs, problemf("%s, %s: of no use without %s client-ca", setting("client-ca-file"), setting("client-common-names"), setting("authentication")))
	}
	errs = append(errs, choice("metrics-authentication", cmp.Or(s.Metrics, AuthenticationNone), metricsModes(modes)))
	if address := serving.MetricsBindAddress; delegates(s.Metrics) && (address == "" || address == "0") {
		errs = append(errs, problemf("%s: of no use where %s switches metrics off", setting("metrics-authentication"), setting("metrics-bind-address")))
	}
	errs = append(errs, choice("private-paths", cmp.Or(s.PrivatePaths, "false"), privatePathsChoices))
	if s.PrivatePaths == "true" && certificate.Source == SourceFiles {
		errs = append(errs, problemf("%s needs %s authority, whose keys make the paths", setting("private-paths"), setting("certificate-source")))
	}
	if s.PrivatePaths == "true" && r.Mode == registration.ModeNone {
		errs = append(errs, problemf("%s needs %s api: nobody else knows the paths", setting("private-paths"), setting("registration")))
	}
	return errors.Join(errs...)
}

// metricsModes are the ways to tell who may read metrics: a scraper has a token.
func metricsModes(modes []string) []string {
	return slices.DeleteFunc(slices.Clone(modes), func(mode string) bool { return mode == AuthenticationClientCA })
}

// Delegates tells whether one of the modes is somebody else's authentication, which asks
// an API server.
func (s *AuthenticationSettings) Delegates() bool { return delegates(s.Mode) || delegates(s.Metrics) }

func delegates(mode string) bool {
	return mode != "" && mode != AuthenticationNone && mode != AuthenticationClientCA
}

// ClientCA tells who may call by client certificates.
func (s *AuthenticationSettings) ClientCA(logger *slog.Logger, metrics prometheus.Registerer) (*Authentication, error) {
	ca, err := serving.NewClientCA(serving.ClientCAOptions{File: s.ClientCAFile, CommonNames: s.ClientCommonNames, Logger: logger, Registry: metrics})
	if err != nil {
		return nil, problemf("%s: %w", setting("client-ca-file"), err)
	}
	return &Authentication{Authenticate: ca.Authenticate, Run: ca.Run}, nil
}

// SharesAuthority tells whether private paths need nothing but to be chosen: all replicas
// have the same keys, and the API server is told of the paths.
func SharesAuthority(certificate *CertificateSettings, r *RegistrationSettings) bool {
	_, _, shared := certificate.AuthoritySecret(r.Config().Endpoint)
	return shared && r.Mode == registration.ModeAPI
}

// Tell says once what stands between the webhooks and whoever reaches the port. Shared is
// [SharesAuthority].
func (s *AuthenticationSettings) Tell(logger *slog.Logger, shared bool) {
	mode := cmp.Or(s.PrivatePaths, PrivatePathsNever)
	switch {
	case cmp.Or(s.Mode, AuthenticationNone) != AuthenticationNone:
	case mode == PrivatePathsNever || mode == PrivatePathsAuto && !shared:
		logger.Warn("anybody who reaches the port may call the webhooks, and sees in the answers what would be changed: " +
			"see --private-paths, --authentication, and who may call in docs/security.md")
	default:
		logger.Info("callers need not show who they are; who cannot read the webhook configurations does not know the paths", "private-paths", mode)
	}
}
