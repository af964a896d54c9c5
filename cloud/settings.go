// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// The modes of --webhook-authentication.
const (
	authenticationNone      = "none"
	authenticationClientCA  = "client-ca"
	authenticationDelegated = "delegated"
)

var (
	authentications = []string{authenticationNone, authenticationClientCA, authenticationDelegated}
	failurePolicies = []string{"Fail", "Ignore"}
)

// inMemory selects an authority of this process alone.
const inMemory = "none"

// pairName is the base name of the certificate files in k8s.io/cloud-provider.
const pairName = "cloud-controller-manager-webhook"

// settings are the values of the flags.
type settings struct {
	webhooks []string
	labels   string // --persistentvolumelabel-controller

	bindAddress        net.IP
	port               int
	disableHTTP2       bool
	metricsBindAddress string
	maxConcurrent      int
	maxBodyBytes       int64
	drainMin, drainMax time.Duration

	certDir, certFile, keyFile, caFile string
	authoritySecret                    string
	cipherSuites                       []string
	curves                             []int32
	minTLSVersion                      string
	sniCertKeys                        []cliflag.NamedCertKey

	authentication    string
	clientCAFile      string
	clientCommonNames []string

	registration       registration.Mode
	configurationName  string
	url, service       string
	staticManifestsDir string
	failurePolicy      string
	timeoutSeconds     int32
	print              bool
}

// takeSettings removes the webhook options from those of a cloud controller manager:
// without them, upstream does not add flags of these names, open the port or serve. Values
// set by a provider become the defaults.
func takeSettings(opts *options.CloudControllerManagerOptions) *settings {
	serve := serving.DefaultOptions()
	s := &settings{
		labels:             labelsOff,
		bindAddress:        net.IPv4(127, 0, 0, 1),
		port:               options.CloudControllerManagerWebhookPort,
		metricsBindAddress: "0",
		// Calls wait for a cloud without using a CPU.
		maxConcurrent: 1024,
		maxBodyBytes:  serve.MaxBodyBytes,
		// Both end within a pod's grace period of 30 s.
		drainMin: 5 * time.Second, drainMax: 25 * time.Second,
		registration:      registration.ModeAPI,
		configurationName: "cloud-webhooks",
	}
	if given := opts.Webhook; given != nil {
		s.webhooks = given.Webhooks
	}
	if given := opts.WebhookServing; given != nil {
		s.port, s.disableHTTP2 = given.BindPort, given.DisableHTTP2Serving
		// 0.0.0.0 is upstream's default: all interfaces, without authentication.
		if !given.BindAddress.Equal(net.IPv4zero) {
			s.bindAddress = given.BindAddress
		}
		s.certDir, s.certFile, s.keyFile = given.ServerCert.CertDirectory, given.ServerCert.CertKey.CertFile, given.ServerCert.CertKey.KeyFile
		s.cipherSuites, s.curves, s.minTLSVersion, s.sniCertKeys = given.CipherSuites, given.CurvePreferences, given.MinTLSVersion, given.SNICertKeys
	}
	opts.Webhook, opts.WebhookServing = nil, nil
	return s
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

	fs = fss.FlagSet("webhook serving")
	fs.IPVar(&s.bindAddress, "webhook-bind-address", s.bindAddress,
		"The IP address on which to listen for the --webhook-secure-port port. An address that is reachable from other hosts requires --webhook-authentication.")
	fs.IntVar(&s.port, "webhook-secure-port", s.port, "Secure port to serve webhooks on. If 0, don't serve webhooks at all.")
	fs.BoolVar(&s.disableHTTP2, "webhook-disable-http2-serving", s.disableHTTP2, "If true, HTTP2 serving will be disabled for the webhook server.")
	fs.StringVar(&s.certDir, "webhook-cert-dir", s.certDir, "The directory of the serving certificate, "+pairName+".crt and .key. "+
		"If it has no certificate, a self-managed authority stored there signs one. Ignored with --webhook-tls-cert-file.")
	fs.StringVar(&s.certFile, "webhook-tls-cert-file", s.certFile, "File containing the x509 certificate for HTTPS, with its chain. Reloaded when it changes.")
	fs.StringVar(&s.keyFile, "webhook-tls-private-key-file", s.keyFile, "File containing the x509 private key matching --webhook-tls-cert-file.")
	fs.StringVar(&s.caFile, "webhook-tls-ca-file", s.caFile, "File containing the CA bundle for the API server to trust, if the certificate is from files. If empty, the caBundle is not managed.")
	fs.StringVar(&s.authoritySecret, "webhook-authority-secret", s.authoritySecret, "With --webhook-registration=api and no certificate: the Secret, namespace/name, "+
		"with the authority that all replicas share (default kube-system/"+pairName+"-authority, or in the namespace of --webhook-service); '"+inMemory+"' for one of this process alone.")
	fs.StringSliceVar(&s.cipherSuites, "webhook-tls-cipher-suites", s.cipherSuites, "Comma-separated list of cipher suites for the webhook server. "+
		"If omitted, the default Go cipher suites will be used. \nPreferred values: "+strings.Join(cliflag.PreferredTLSCipherNames(), ", ")+
		". \nInsecure values: "+strings.Join(cliflag.InsecureTLSCipherNames(), ", ")+".")
	fs.Int32SliceVar(&s.curves, "webhook-tls-curve-preferences", s.curves, "Comma-separated list of numeric Go crypto/tls CurveID values for the webhook server. "+
		"If omitted, the default Go curves will be used.")
	fs.StringVar(&s.minTLSVersion, "webhook-tls-min-version", s.minTLSVersion, "Minimum TLS version supported for the webhook server. Possible values: "+
		strings.Join(cliflag.TLSPossibleVersions(), ", "))
	fs.Var(cliflag.NewNamedCertKeyArray(&s.sniCertKeys), "webhook-tls-sni-cert-key", "A pair of x509 certificate and private key file paths, "+
		"optionally suffixed with a list of domain patterns (\"foo.crt,foo.key:*.foo.com,foo.com\") for which it is used. May be repeated.")
	fs.StringVar(&s.metricsBindAddress, "webhook-metrics-bind-address", s.metricsBindAddress,
		"host:port to serve /metrics, /livez and /readyz of the webhooks on without TLS, for a process without --secure-port; 0 disables it.")
	fs.IntVar(&s.maxConcurrent, "webhook-max-concurrent-reviews", s.maxConcurrent, "Maximum number of concurrent calls. Further calls queue for up to half of their timeout.")
	fs.Int64Var(&s.maxBodyBytes, "webhook-max-body-bytes", s.maxBodyBytes, "Maximum size of a request body in bytes. Larger requests get 413.")
	fs.DurationVar(&s.drainMin, "webhook-drain-min", s.drainMin, "Minimum time to keep serving after SIGTERM, even without open connections.")
	fs.DurationVar(&s.drainMax, "webhook-drain-timeout", s.drainMax, "Maximum time to wait after SIGTERM for connections to close.")

	fs = fss.FlagSet("webhook authentication")
	fs.StringVar(&s.authentication, "webhook-authentication", s.authentication, "Who may call: any caller ("+authenticationNone+
		"), callers with a certificate of --webhook-client-ca-file ("+authenticationClientCA+"), or callers that the API server authenticates and authorizes ("+authenticationDelegated+
		"). Default none on a loopback address; required for other addresses.")
	fs.StringVar(&s.clientCAFile, "webhook-client-ca-file", s.clientCAFile, "With --webhook-authentication=client-ca: file with the CA bundle that verifies client certificates. Reloaded when it changes.")
	fs.StringSliceVar(&s.clientCommonNames, "webhook-client-common-names", s.clientCommonNames,
		"With --webhook-authentication=client-ca: accepted common names of client certificates; if empty, any certificate signed by the CA is accepted.")

	fs = fss.FlagSet("webhook registration")
	fs.Var(&s.registration, "webhook-registration", "How the webhooks are registered: by this process through the API (api) or as static manifests for kube-apiserver (manifest), or not at all (none).")
	fs.StringVar(&s.configurationName, "webhook-configuration-name", s.configurationName, "Name of the webhook configurations.")
	fs.StringVar(&s.url, "webhook-url", s.url, "The URL where the API server calls the webhooks (default https://127.0.0.1 and the port, for a process on the host of each API server).")
	fs.StringVar(&s.service, "webhook-service", s.service, "The Service through which the API server calls the webhooks inside the cluster, namespace/name[:port].")
	fs.StringVar(&s.staticManifestsDir, "webhook-static-manifests-dir", s.staticManifestsDir,
		"With --webhook-registration=manifest: directory for static manifests; set staticManifestsDir of kube-apiserver's two webhook plugins to its subdirectories mutating and validating.")
	fs.StringVar(&s.failurePolicy, "webhook-failure-policy", s.failurePolicy, "Failure policy of the webhooks, Ignore or Fail; empty for that of each webhook.")
	fs.Int32Var(&s.timeoutSeconds, "webhook-timeout", s.timeoutSeconds, "Seconds that the API server waits for a webhook to respond, 1 to 30; 0 for the timeout of each webhook.")
	fs.BoolVar(&s.print, "print-webhook-configuration", s.print, "Print the webhook configurations that --webhook-registration would write, and exit.")
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
	return cli.ValidateSelection("webhooks", s.webhooks, known)
}

// validate reports all problems of the other flags of a process that serves.
func (s *settings) validate(opts *options.CloudControllerManagerOptions) error {
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case s.port < 0 || s.port > 65535:
		problem("--webhook-secure-port %d must be between 0 and 65535", s.port)
	case s.port == 0:
		problem("--webhook-secure-port=0 serves no webhooks, but --webhooks enables some: set a port, or omit --webhooks")
	case opts.SecureServing != nil && s.port == opts.SecureServing.BindPort:
		problem("--webhook-secure-port cannot be the same value as --secure-port, %d", s.port)
	}
	if (s.certFile == "") != (s.keyFile == "") {
		problem("--webhook-tls-cert-file and --webhook-tls-private-key-file must be set together")
	}
	if s.caFile != "" && s.certFile == "" && s.certDir == "" {
		problem("--webhook-tls-ca-file requires --webhook-tls-cert-file")
	}
	if _, err := s.tls(); err != nil {
		errs = append(errs, err)
	}
	listener := s.serving()
	if err := listener.ValidateSettings(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, s.validateCallers(), s.validateRegistration())
	return errors.Join(errs...)
}

func (s *settings) validateCallers() error {
	var errs []error
	if s.authentication != "" {
		errs = append(errs, cli.Choice("webhook-authentication", s.authentication, authentications))
	} else if !s.bindAddress.IsLoopback() {
		errs = append(errs, fmt.Errorf("--webhook-bind-address %s: any client on the network could call the webhooks, and through them the cloud: "+
			"set --webhook-authentication to client-ca or delegated, or to none if the network restricts callers", s.bindAddress))
	}
	switch {
	case s.authentication == authenticationClientCA && s.clientCAFile == "":
		errs = append(errs, errors.New("--webhook-authentication=client-ca requires --webhook-client-ca-file"))
	case s.authentication != authenticationClientCA && (s.clientCAFile != "" || len(s.clientCommonNames) > 0):
		errs = append(errs, errors.New("--webhook-client-ca-file, --webhook-client-common-names require --webhook-authentication=client-ca"))
	}
	return errors.Join(errs...)
}

func (s *settings) validateRegistration() error {
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.failurePolicy != "" {
		errs = append(errs, cli.Choice("webhook-failure-policy", s.failurePolicy, failurePolicies))
	}
	if s.timeoutSeconds < 0 || s.timeoutSeconds > 30 {
		problem("--webhook-timeout %d: the API server allows 1 to 30 seconds", s.timeoutSeconds)
	}
	if s.url != "" && s.service != "" {
		problem("--webhook-url and --webhook-service are mutually exclusive: use --webhook-service for a process in the cluster")
	}
	if config, err := s.config(); err != nil {
		errs = append(errs, err)
	} else if err := config.Validate(); err != nil {
		problem("--webhook-configuration-name, --webhook-url, --webhook-service: %w", err)
	}
	switch {
	case s.registration == registration.ModeManifest:
		if !filepath.IsAbs(s.staticManifestsDir) {
			problem("--webhook-registration=manifest requires --webhook-static-manifests-dir, an absolute path")
		}
		if s.service != "" {
			problem("--webhook-registration=manifest requires a URL: kube-apiserver does not allow a Service in static manifests")
		}
	case s.staticManifestsDir != "":
		problem("--webhook-static-manifests-dir requires --webhook-registration=manifest")
	}
	if namespace, name, _ := strings.Cut(s.authoritySecret, "/"); s.authoritySecret != "" && s.authoritySecret != inMemory &&
		(len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0) {
		problem("--webhook-authority-secret %q: must be NAMESPACE/NAME or %s", s.authoritySecret, inMemory)
	}
	return errors.Join(errs...)
}

// config is the shared configuration of all registrations.
func (s *settings) config() (registration.Config, error) {
	config := registration.Config{Name: s.configurationName, Endpoint: registration.Endpoint{URL: s.url}}
	if s.service == "" {
		if s.url == "" {
			config.Endpoint.URL = "https://" + net.JoinHostPort(s.localHost(), strconv.Itoa(s.port))
		}
		return config, nil
	}
	service, err := hosting.ParseService(s.service)
	if err != nil {
		return config, fmt.Errorf("--webhook-service %w", err)
	}
	config.Endpoint = registration.Endpoint{Service: service}
	return config, nil
}

// localHost is the host name or address for the API server on the same host.
func (s *settings) localHost() string {
	switch {
	case s.bindAddress.Equal(net.IPv4zero):
		return "127.0.0.1"
	case s.bindAddress.Equal(net.IPv6zero):
		return "::1"
	default:
		return s.bindAddress.String()
	}
}

// tls applies the TLS flags.
func (s *settings) tls() (func(*tls.Config), error) {
	suites, err := cliflag.TLSCipherSuites(s.cipherSuites)
	if err != nil {
		return nil, fmt.Errorf("--webhook-tls-cipher-suites: %w", err)
	}
	curves, err := cliflag.TLSCurvePreferences(s.curves)
	if err != nil {
		return nil, fmt.Errorf("--webhook-tls-curve-preferences: %w", err)
	}
	version, err := cliflag.TLSVersion(s.minTLSVersion)
	if err != nil {
		return nil, fmt.Errorf("--webhook-tls-min-version: %w", err)
	}
	return func(config *tls.Config) {
		config.CipherSuites, config.CurvePreferences, config.MinVersion = suites, curves, version
	}, nil
}

// serving returns the listener's addresses and limits.
func (s *settings) serving() serving.Options {
	o := serving.DefaultOptions()
	o.BindAddress, o.Port = s.bindAddress.String(), s.port
	o.HTTP2 = !s.disableHTTP2
	o.MetricsBindAddress = s.metricsBindAddress
	o.MaxConcurrentReviews, o.MaxBodyBytes = s.maxConcurrent, s.maxBodyBytes
	o.DrainMin, o.DrainMax = s.drainMin, s.drainMax
	return o
}
