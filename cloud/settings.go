// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"crypto/tls"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

const authenticationDelegated = "Delegated"

var authentications = hosting.AuthenticationModes(authenticationDelegated)

// inMemory selects an authority of this process alone.
const inMemory = "none"

// pairName is the base name of the certificate files in k8s.io/cloud-provider.
const pairName = "cloud-controller-manager-webhook"

// settings are the values of the flags: those that every host has, and those of a cloud controller
// manager.
type settings struct {
	Registration   registration.Settings               `json:"registration"`
	Certificate    certificate.Settings                `json:"certificate"`
	LeaderElection registration.LeaderElectionSettings `json:"leaderElection"`
	Authentication serving.AuthenticationSettings      `json:"authentication"`
	Serving        serving.Settings                    `json:"serving"`

	webhooks     []string
	labels       string // --persistentvolumelabel-controller
	disableHTTP2 bool
	certDir      string
	curves       []int32
	sniCertKeys  []cliflag.NamedCertKey
	print        bool
}

// takeSettings removes the webhook options from those of a cloud controller manager:
// without them, upstream does not add flags of these names, open the port or serve. Values
// set by a provider become the defaults.
func takeSettings(opts *options.CloudControllerManagerOptions) *settings {
	s := &settings{labels: labelsOff}
	s.hosting().SetDefaults("cloud-webhooks")
	s.Authentication.Mode = "" // the address decides
	s.Registration.URL = ""    // the port decides
	s.Certificate.DefaultSecret = pairName + "-authority"
	s.Serving.BindAddress, s.Serving.SecurePort, s.Serving.MetricsBindAddress = "127.0.0.1", options.CloudControllerManagerWebhookPort, "0"
	// Calls wait for a cloud without using a CPU.
	s.Serving.MaxConcurrentReviews = 1024
	// Both end within a pod's grace period of 30 s.
	s.Serving.DrainMin, s.Serving.DrainTimeout = 5*time.Second, 25*time.Second
	if given := opts.Webhook; given != nil {
		s.webhooks = given.Webhooks
	}
	if given := opts.WebhookServing; given != nil {
		s.Serving.SecurePort, s.disableHTTP2 = int32(given.BindPort), given.DisableHTTP2Serving
		// 0.0.0.0 is upstream's default: all interfaces, without authentication.
		if !given.BindAddress.Equal(net.IPv4zero) {
			s.Serving.BindAddress = given.BindAddress.String()
		}
		s.certDir, s.Certificate.CertFile, s.Certificate.PrivateKeyFile = given.ServerCert.CertDirectory, given.ServerCert.CertKey.CertFile, given.ServerCert.CertKey.KeyFile
		s.Serving.TLSCipherSuites, s.Serving.TLSMinVersion = given.CipherSuites, given.MinTLSVersion
		s.curves, s.sniCertKeys = given.CurvePreferences, given.SNICertKeys
	}
	opts.Webhook, opts.WebhookServing = nil, nil
	return s
}

// hosting returns the settings that every host has.
func (s *settings) hosting() *hosting.Settings {
	return &hosting.Settings{
		Registration: &s.Registration, Certificate: &s.Certificate, LeaderElection: &s.LeaderElection,
		Authentication: &s.Authentication, Serving: &s.Serving, Modes: authentications,
	}
}

// usages are the flags of [hosting.Flags] that a cloud controller manager has, with the prefix
// webhook-, and their usage where they mean something else.
var usages = map[string]string{
	"bind-address":  "The IP address on which to listen for the --webhook-secure-port port. An address that is reachable from other hosts requires --webhook-authentication.",
	"secure-port":   "Secure port to serve webhooks on. If 0, don't serve webhooks at all.",
	"tls-cert-file": "", "tls-private-key-file": "", "tls-ca-file": "",
	"authority-secret": "With --webhook-registration=API and no certificate: the Secret, namespace/name, " +
		"with the authority that all replicas share (default kube-system/" + pairName + "-authority, or in the namespace of --webhook-service); '" + inMemory + "' for one of this process alone.",
	"tls-cipher-suites": "", "tls-min-version": "", "max-concurrent-reviews": "", "max-body-bytes": "", "drain-min": "", "drain-timeout": "",
	"metrics-bind-address": "host:port to serve /metrics, /livez and /readyz of the webhooks on without TLS, for a process without --secure-port; 0 disables it.",
	"authentication": "Who may call: any caller (None), callers with a certificate of --webhook-client-ca-file (ClientCA), or callers that the API server authenticates and authorizes (Delegated). " +
		"Default None on a loopback address; required for other addresses.",
	"client-ca-file": "", "client-common-names": "",
	"url":          "The URL where the API server calls the webhooks (default https://127.0.0.1 and the port, for a process on the host of each API server).",
	"registration": "", "service": "", "configuration-name": "", "static-manifests-dir": "", "failure-policy": "", "webhook-timeout": "",
}

// flags are the flags of the settings that every host has.
func (s *settings) flags() []setting.Flag {
	prefixed := func(name string) string { return "webhook-" + strings.TrimPrefix(name, "webhook-") }
	names := []string{"with --certificate-source Files: ", ""} // a certificate file selects it
	for name := range usages {
		names = append(names, "--"+name+" ", "--"+prefixed(name)+" ")
	}
	inUsage := strings.NewReplacer(names...)
	var out []setting.Flag
	for _, f := range hosting.Flags(s, "", authentications) {
		usage, ok := usages[f.Name]
		if !ok {
			continue
		}
		if usage == "" {
			usage = inUsage.Replace(f.Usage)
			usage = strings.ToUpper(usage[:1]) + usage[1:] + "."
		}
		f.Name, f.Usage = prefixed(f.Name), usage
		out = append(out, f)
	}
	return out
}

// addFlags adds the flags; --webhooks only if there is more than one.
func (s *settings) addFlags(fss *cliflag.NamedFlagSets, webhooks []*Webhook, choice bool) {
	var names, off []string
	for _, w := range webhooks {
		names = append(names, w.Name)
		if w.DisabledByDefault {
			off = append(off, w.Name)
		}
	}
	fs := fss.FlagSet("webhook")
	if choice {
		fs.StringSliceVar(&s.webhooks, "webhooks", s.webhooks, "A list of webhooks to enable. '*' enables all on-by-default webhooks, "+
			"'foo' enables the webhook named 'foo', '-foo' disables the webhook named 'foo'. Without it none is enabled.\n"+
			"All webhooks: "+strings.Join(names, ", ")+"\nDisabled-by-default webhooks: "+strings.Join(off, ", "))
	}
	if choice && slices.ContainsFunc(webhooks, func(w *Webhook) bool { return w.labels != nil }) {
		fs.StringVar(&s.labels, "persistentvolumelabel-controller", s.labels, "Whether the controller "+labelController+" labels persistent volumes that were created without the webhook: "+
			"'"+labelsOn+"', '"+labelsDryRun+"' for events about what it would do, or '"+labelsOff+"'. It runs on the leader, if --controllers enables it.")
	}
	for _, f := range s.flags() {
		section, _, _ := strings.Cut(f.Field, ".")
		if section == "certificate" {
			section = "serving"
		}
		setting.AddTo(fss.FlagSet("webhook "+section), s, f)
	}
	fs = fss.FlagSet("webhook serving")
	fs.BoolVar(&s.disableHTTP2, "webhook-disable-http2-serving", s.disableHTTP2, "If true, HTTP2 serving will be disabled for the webhook server.")
	fs.StringVar(&s.certDir, "webhook-cert-dir", s.certDir, "The directory of the serving certificate, "+pairName+".crt and .key. "+
		"If it has no certificate, a self-managed authority stored there signs one. Ignored with --webhook-tls-cert-file.")
	fs.Int32SliceVar(&s.curves, "webhook-tls-curve-preferences", s.curves, "Comma-separated list of numeric Go crypto/tls CurveID values for the webhook server. "+
		"If omitted, the default Go curves will be used.")
	fs.Var(cliflag.NewNamedCertKeyArray(&s.sniCertKeys), "webhook-tls-sni-cert-key", "A pair of x509 certificate and private key file paths, "+
		"optionally suffixed with a list of domain patterns (\"foo.crt,foo.key:*.foo.com,foo.com\") for which it is used. May be repeated.")
	fss.FlagSet("webhook registration").BoolVar(&s.print, "print-webhook-configuration", s.print, "Print the webhook configurations that --webhook-registration would write, and exit.")
}

// enabled are the webhooks that --webhooks selects by name or alias, or all that are on by
// default if there is no such flag.
func (s *settings) enabled(webhooks []*Webhook, choice bool) []*Webhook {
	var out []*Webhook
	for _, w := range webhooks {
		if selected, named := s.names(w); selected || !named && !w.DisabledByDefault && (!choice || slices.Contains(s.webhooks, "*")) {
			out = append(out, w)
		}
	}
	return out
}

// names reports whether an entry of --webhooks names a webhook, and whether it enables it.
// The first one counts.
func (s *settings) names(w *Webhook) (selected, named bool) {
	for _, entry := range s.webhooks {
		name, not := strings.CutPrefix(entry, "-")
		if name == w.Name || slices.Contains(w.Aliases, name) {
			return !not, true
		}
	}
	return false, false
}

// validateSelection reports entries of --webhooks that select nothing.
func (s *settings) validateSelection(webhooks []*Webhook) error {
	var known []string
	for _, w := range webhooks {
		known = append(append(known, w.Name), w.Aliases...)
	}
	return setting.Join(setting.ValidateSelection("--webhooks", s.webhooks, known))
}

// validate reports all problems of the other flags of a process that serves.
func (s *settings) validate(opts *options.CloudControllerManagerOptions) field.ErrorList {
	complete := s.complete()
	errs := complete.hosting().Validate()
	path := field.NewPath("serving")
	port := path.Child("securePort")
	switch {
	case s.Serving.SecurePort == 0:
		errs = append(errs, field.Invalid(port, 0, "serves no webhooks, but --webhooks enables some: set a port, or omit --webhooks"))
	case opts.SecureServing != nil && int(s.Serving.SecurePort) == opts.SecureServing.BindPort:
		errs = append(errs, field.Invalid(port, s.Serving.SecurePort, "cannot be the same value as --secure-port"))
	}
	if s.bindIP() == nil {
		errs = append(errs, field.Invalid(path.Child("bindAddress"), s.Serving.BindAddress, "must be an IP address"))
	} else if s.Authentication.Mode == "" && !s.bindIP().IsLoopback() {
		errs = append(errs, field.Required(field.NewPath("authentication", "mode"), "any client on the network could call the webhooks, and through them the cloud: "+
			"set ClientCA or Delegated, or None if the network restricts callers"))
	}
	if _, err := s.tls(); err != nil {
		errs = append(errs, field.Invalid(path.Child("curves"), s.curves, err.Error()))
	}
	return errs
}

// complete returns the settings with what follows from others.
func (s *settings) complete() *settings {
	out := *s
	if out.Registration.Service == nil && out.Registration.URL == "" {
		out.Registration.URL = "https://" + net.JoinHostPort(s.localHost(), strconv.Itoa(int(s.Serving.SecurePort)))
	}
	out.Authentication.Mode = s.callers()
	if out.Certificate.AuthoritySecret == inMemory {
		out.Certificate.AuthoritySecret = ""
	}
	switch {
	case out.Certificate.CertFile != "":
		out.Certificate.Source = certificate.SourceFiles
	case out.certDir != "":
		out.Certificate.CAFile = "" // of a pair that may be there
	}
	out.Serving.HTTP2 = !s.disableHTTP2
	return &out
}

// config is the shared configuration of all registrations.
func (s *settings) config() registration.Config { return hosting.Config(&s.complete().Registration) }

// bindIP is the address of the listener, or nil without one.
func (s *settings) bindIP() net.IP { return net.ParseIP(s.Serving.BindAddress) }

// localHost is the host name or address for the API server on the same host.
func (s *settings) localHost() string {
	switch ip := s.bindIP(); {
	case ip.Equal(net.IPv4zero):
		return "127.0.0.1"
	case ip.Equal(net.IPv6zero):
		return "::1"
	default:
		return s.Serving.BindAddress
	}
}

// tls applies the flags of TLS that only a cloud controller manager has.
func (s *settings) tls() (func(*tls.Config), error) {
	curves, err := cliflag.TLSCurvePreferences(s.curves)
	return func(config *tls.Config) { config.CurvePreferences = curves }, err
}
