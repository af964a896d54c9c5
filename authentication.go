// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/internal/cli"
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
const PrivatePathsAuto = "auto"

var privatePathsChoices = []string{PrivatePathsAuto, "true", "false"}

// Authentication tells who may call. It is there until the last review is answered.
type Authentication struct {
	// Authenticate is asked before each call; see [serving.Options].
	Authenticate func(*http.Request) error
	// Ready returns nil once it can be asked. May be nil.
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
func (a *App) authenticate(s *AuthenticationSettings, mode string, env Environment) (*Authentication, error) {
	if mode == AuthenticationClientCA {
		ca, err := serving.NewClientCA(serving.ClientCAOptions{
			File: s.ClientCAFile, CommonNames: s.ClientCommonNames, Logger: env.Logger, Registry: env.Metrics,
		})
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		return &Authentication{Authenticate: ca.Authenticate, Run: ca.Run}, nil
	}
	for _, other := range a.authentications {
		if other.name == mode {
			made, err := other.build(env)
			if err != nil {
				return nil, fmt.Errorf("authentication %s: %w", other.name, err)
			}
			return &made, nil
		}
	}
	return nil, nil
}

// keyed is a certificate source that has keys for private paths: that of the signer
// first, then those of signers that are about to sign or have signed until lately. All
// replicas have the same.
type keyed interface{ PathKeys() [][]byte }

// canFence tells whether private paths need nothing but to be chosen: all replicas have
// the same keys, and the API server is told of the paths.
func (s *Settings) canFence() bool {
	_, _, shared := s.Certificate.AuthoritySecret(s.Registration.Config().Endpoint)
	return shared && s.Registration.Mode == registration.ModeAPI
}

// stillCalled is for how long a path is answered that is registered no more: API servers
// hear of the change within a moment.
const stillCalled = 2 * time.Minute

// privatePaths make paths that only who can read the webhook configurations knows.
type privatePaths struct {
	keys keyed
	mode string // of the setting
	// live are the paths that are registered, if that is known. May be nil.
	live func() (paths []string, known bool)

	plainUntil atomic.Int64 // UnixNano; until then others are answered too
	lookAt     atomic.Int64 // UnixNano; from then on live is asked again
}

// newPrivatePaths returns nil if nobody has to know the paths.
func (s *Settings) newPrivatePaths(source certificate.Source, live func() ([]string, bool)) (*privatePaths, error) {
	mode := cmp.Or(s.Authentication.PrivatePaths, "false")
	if mode != "true" && !s.canFence() {
		return nil, nil
	}
	keys, ok := source.(keyed)
	if !ok {
		return nil, errors.New("--private-paths: the source of the certificate has no keys to make them of: use --certificate-source authority")
	}
	if s.Registration.Mode != registration.ModeAPI {
		live = nil
	}
	return &privatePaths{keys: keys, mode: mode, live: live}, nil
}

func isPlain(path string) bool {
	_, private := admission.PublicPath(path)
	return !private
}

// chosen tells whether private paths are what is to be registered. For auto, what is
// registered decides.
func (p *privatePaths) chosen() bool {
	if p.mode != PrivatePathsAuto {
		return p.mode == "true"
	}
	paths, known := p.live()
	return known && !slices.ContainsFunc(paths, isPlain)
}

// known is nil once it is known what to register.
func (p *privatePaths) known() error {
	if p.mode == PrivatePathsAuto {
		if _, known := p.live(); !known {
			return errors.New("the webhook configurations were not seen yet, whose paths decide about private ones")
		}
	}
	return nil
}

// plain tells whether paths without a segment are answered too.
func (p *privatePaths) plain() bool {
	switch {
	case p.mode == "false":
		return true
	case p.live == nil:
		return false
	}
	now := time.Now()
	if now.UnixNano() >= p.lookAt.Load() {
		paths, known := p.live()
		if !known {
			return true
		}
		p.lookAt.Store(now.Add(time.Second).UnixNano())
		if slices.ContainsFunc(paths, isPlain) {
			p.plainUntil.Store(now.Add(stillCalled).UnixNano())
		}
	}
	return now.UnixNano() < p.plainUntil.Load()
}

// segments are those at which a path is answered, the one that is registered first.
// They are of 128 bits, and tell nothing of the key or of each other.
func (p *privatePaths) segments(path string) []string {
	var segments []string
	for _, key := range p.keys.PathKeys() {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(path))
		segments = append(segments, hex.EncodeToString(mac.Sum(nil)[:admission.PathSegmentBytes]))
	}
	return segments
}

// ready is nil once there is a key: nothing may be registered before.
func (p *privatePaths) ready() error {
	if len(p.keys.PathKeys()) == 0 {
		return errors.New("there is no key for private paths yet")
	}
	return nil
}

// registered is the path that the API server is told, and answered from now on.
func (p *privatePaths) registered(path string) string {
	if segments := p.segments(path); p.chosen() && len(segments) > 0 {
		return path + "/" + segments[0]
	}
	return path
}

// guard has the listener ask who calls, and who reads metrics.
func (p *process) guard(options *serving.Options) {
	if p.callers != nil {
		options.Authenticate, options.ClientCertificates = p.callers.Authenticate, true
		if p.callers.Ready != nil {
			options.Checks = append(options.Checks, serving.Check{Name: "authentication", Ready: p.callers.Ready, Gate: true})
		}
	}
	if p.readers != nil {
		options.AuthenticateMetrics, options.ClientCertificates = p.readers.Authenticate, true
	}
	if p.private != nil {
		options.PathSegments, options.PlainPaths = p.private.segments, p.private.plain
		options.Checks = append(options.Checks, serving.Check{Name: "private-paths", Ready: p.private.ready, Gate: true})
	}
}

// tellWhoMayCall says once what stands between the webhooks and whoever reaches the port.
func (p *process) tellWhoMayCall() {
	switch {
	case p.callers != nil:
	case p.private == nil || p.private.mode == "false":
		p.logger.Warn("anybody who reaches the port may call the webhooks, and sees in the answers what would be changed: " +
			"see --private-paths, --authentication, and who may call in docs/security.md")
	default:
		p.logger.Info("callers need not show who they are; who cannot read the webhook configurations does not know the paths", "private-paths", p.private.mode)
	}
}

// registered are the definitions as the API server is told of them.
func (p *process) registered(webhooks []admission.Webhook) []admission.Webhook {
	if p.private == nil {
		return webhooks
	}
	out := slices.Clone(webhooks)
	for i := range out {
		out[i].Path = p.private.registered(out[i].Path)
	}
	return out
}

// registeredPath is a path as the API server is told of it.
func (p *process) registeredPath(path string) string {
	if p.private == nil {
		return path
	}
	return p.private.registered(path)
}
