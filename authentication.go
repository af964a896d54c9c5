// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// Who may call. [WithAuthentication] adds others.
const (
	// AuthenticationNone lets everybody call who reaches the port.
	AuthenticationNone = "none"
	// AuthenticationClientCA wants a client certificate of a CA.
	AuthenticationClientCA = "client-ca"
)

// AuthenticationSettings say who may call admission webhooks. The API server shows who
// it is if its AdmissionConfiguration says so.
type AuthenticationSettings struct {
	// Mode is [AuthenticationNone], [AuthenticationClientCA] or the name of a
	// [WithAuthentication]. Empty means AuthenticationNone.
	Mode string
	// ClientCAFile is for AuthenticationClientCA: who signs callers' certificates, PEM.
	// It is read again when it changes.
	ClientCAFile string
	// ClientCommonNames are for AuthenticationClientCA: those who may call; empty for
	// all whose certificate was signed.
	ClientCommonNames []string
	// Metrics says who may read /metrics: [AuthenticationNone] or the name of a
	// [WithAuthentication]. Empty means AuthenticationNone.
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

// PrivatePathsAuto makes paths private where all replicas share an authority and register
// themselves, unless they are registered otherwise already: a server of before, which is
// replaced one by one, would not know them.
const PrivatePathsAuto = hosting.PrivatePathsAuto

var privatePathsChoices = []string{PrivatePathsAuto, "true", "false"}

// Authentication tells who may call. It is there until the last review is answered.
type Authentication struct {
	// Authenticate is asked before each call; see [serving.Options].
	Authenticate func(*http.Request) error
	// Ready returns nil once it can be asked. Call [Environment.Changed] then. May be nil.
	Ready func() error
	// Run works until the context ends, and then returns nil. May be nil.
	Run func(ctx context.Context) error
}

// WithAuthentication adds a way to tell who may call, for --authentication. Build is
// called for a run that chooses it.
func WithAuthentication(name string, build func(Environment) (Authentication, error)) Option {
	return func(a *App) { a.authentications = append(a.authentications, authentication{name, build}) }
}

type authentication struct {
	name  string
	build func(Environment) (Authentication, error)
}

func (a *App) authenticationNames() []string {
	names := []string{AuthenticationNone, AuthenticationClientCA}
	for _, other := range a.authentications {
		names = append(names, other.name)
	}
	return names
}

func (a *App) checkAuthentications() {
	names := a.authenticationNames()
	for i, other := range a.authentications {
		if other.name == "" || other.build == nil {
			a.mistake("authentication %q: name and function are needed", other.name)
		}
		if slices.Contains(names[:i+2], other.name) {
			a.mistake("authentication %q is there twice", other.name)
		}
	}
}

// AddAuthenticationFlags binds the settings that say who may call to flags. The values
// they have now are the defaults.
func (a *App) AddAuthenticationFlags(cmd *cobra.Command, s *AuthenticationSettings) {
	flags := cmd.Flags()
	modes := a.authenticationNames()
	flags.StringVar(&s.Mode, "authentication", cmp.Or(s.Mode, AuthenticationNone),
		"`who` may call admission webhooks: "+cli.OneOf(modes)+"; the API server's AdmissionConfiguration must say how it shows who it is")
	flags.StringVar(&s.ClientCAFile, "client-ca-file", s.ClientCAFile,
		"with --authentication client-ca: `file` with the CA of callers' certificates, PEM; read again when it changes")
	flags.StringSliceVar(&s.ClientCommonNames, "client-common-names", s.ClientCommonNames,
		"with --authentication client-ca: common `names` of those who may call; empty for all whom the CA has signed")
	metrics := a.metricsAuthentications()
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

// validateAuthentication reports every mistake in the flags of AddAuthenticationFlags.
func (a *App) validateAuthentication(s *Settings) error {
	auth := &s.Authentication
	errs := []error{cli.Choice("authentication", cmp.Or(auth.Mode, AuthenticationNone), a.authenticationNames())}
	switch {
	case auth.Mode == AuthenticationClientCA && auth.ClientCAFile == "":
		errs = append(errs, errors.New("--authentication client-ca needs --client-ca-file"))
	case auth.Mode != AuthenticationClientCA && (auth.ClientCAFile != "" || len(auth.ClientCommonNames) > 0):
		errs = append(errs, errors.New("--client-ca-file, --client-common-names: of no use without --authentication client-ca"))
	}
	errs = append(errs, cli.Choice("metrics-authentication", cmp.Or(auth.Metrics, AuthenticationNone), a.metricsAuthentications()))
	if address := s.Serving.MetricsBindAddress; delegates(auth.Metrics) && (address == "" || address == "0") {
		errs = append(errs, errors.New("--metrics-authentication: of no use where --metrics-bind-address switches metrics off"))
	}
	errs = append(errs, cli.Choice("private-paths", cmp.Or(auth.PrivatePaths, "false"), privatePathsChoices))
	if auth.PrivatePaths == "true" && s.Certificate.Source == SourceFiles {
		errs = append(errs, errors.New("--private-paths needs --certificate-source authority, whose keys make the paths"))
	}
	if auth.PrivatePaths == "true" && s.Registration.Mode == registration.ModeNone {
		errs = append(errs, errors.New("--private-paths needs --registration api: nobody else knows the paths"))
	}
	return errors.Join(errs...)
}

// metricsAuthentications are the ways to tell who may read metrics: a scraper has a token.
func (a *App) metricsAuthentications() []string {
	return slices.Delete(a.authenticationNames(), 1, 2) // without AuthenticationClientCA
}

// delegates tells whether a mode is somebody else's authentication, which asks an API
// server.
func delegates(mode string) bool {
	return mode != "" && mode != AuthenticationNone && mode != AuthenticationClientCA
}

// authenticate makes what the settings choose for a mode; nil if everybody may call.
func (a *App) authenticate(s *AuthenticationSettings, mode string, env Environment) (*hosting.Authentication, error) {
	if mode == AuthenticationClientCA {
		ca, err := serving.NewClientCA(serving.ClientCAOptions{
			File: s.ClientCAFile, CommonNames: s.ClientCommonNames, Logger: env.Logger, Registry: env.Metrics,
		})
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		return &hosting.Authentication{Authenticate: ca.Authenticate, Run: ca.Run}, nil
	}
	for _, other := range a.authentications {
		if other.name == mode {
			made, err := other.build(env)
			if err != nil {
				return nil, fmt.Errorf("authentication %s: %w", other.name, err)
			}
			return (*hosting.Authentication)(&made), nil
		}
	}
	return nil, nil
}

// sharesAuthority tells whether private paths need nothing but to be chosen: all replicas
// have the same keys, and the API server is told of the paths.
func (s *Settings) sharesAuthority() bool {
	_, _, shared := s.Certificate.AuthoritySecret(s.Registration.Config().Endpoint)
	return shared && s.Registration.Mode == registration.ModeAPI
}

// tellWhoMayCall says once what stands between the webhooks and whoever reaches the port.
func (s *Settings) tellWhoMayCall() {
	mode := cmp.Or(s.Authentication.PrivatePaths, hosting.PrivatePathsNever)
	switch {
	case cmp.Or(s.Authentication.Mode, AuthenticationNone) != AuthenticationNone:
	case mode == hosting.PrivatePathsNever || mode == PrivatePathsAuto && !s.sharesAuthority():
		s.Logger.Warn("anybody who reaches the port may call the webhooks, and sees in the answers what would be changed: " +
			"see --private-paths, --authentication, and who may call in docs/security.md")
	default:
		s.Logger.Info("callers need not show who they are; who cannot read the webhook configurations does not know the paths", "private-paths", mode)
	}
}
