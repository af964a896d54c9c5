// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/leaderelection"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/conditions"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/recording"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
	"github.com/sallyport-io/sallyport/registration"
)

// choices are the values of enum fields, by path in the file. Elements of a list use the path
// of the list.
var choices = map[string][]string{
	"registration.mode":           {string(registration.ModeAPI), string(registration.ModeManifest), string(registration.ModeNone)},
	"registration.failurePolicy":  {"Fail", "Ignore"},
	"registration.reviewVersions": reviewversion.All(),
	"registration.foreignTerms":   {foreignTermsKeep, foreignTermsRefuse},
	"certificate.source":          {frontdoor.SourceAuthority, frontdoor.SourceFiles},
	"authentication.mode":         {frontdoor.AuthenticationNone, frontdoor.AuthenticationClientCA, AuthenticationDelegated},
	"authentication.metrics":      {frontdoor.AuthenticationNone, AuthenticationDelegated},
	"log.level":                   {"debug", "info", "warn", "error"},
	"log.format":                  {"text", "json"},
	"webhooks.failurePolicy":      {"Fail", "Ignore"},
	"webhooks.matchPolicy":        {"Exact", "Equivalent"},
	"webhooks.reinvocationPolicy": {"Never", "IfNeeded"},
}

var endsWithNumber = regexp.MustCompile(`(^|\.)[0-9]+$`)

// kube-apiserver's longest webhook timeout, and how long it keeps an idle connection.
const (
	maxTimeout           = 30 * time.Second
	apiServerIdleTimeout = 90 * time.Second
)

// validator collects the problems in the fields of one section.
type validator struct {
	path *field.Path
	errs field.ErrorList
}

func (v *validator) invalid(name string, value any, detail string) {
	v.errs = append(v.errs, field.Invalid(v.path.Child(name), value, detail))
}

func (v *validator) required(name, detail string) {
	v.errs = append(v.errs, field.Required(v.path.Child(name), detail))
}

func (v *validator) forbidden(name, detail string) {
	v.errs = append(v.errs, field.Forbidden(v.path.Child(name), detail))
}

func (v *validator) choice(name, value string) {
	if path := v.path.Child(name); !slices.Contains(choices[path.String()], value) {
		v.errs = append(v.errs, field.NotSupported(path, value, choices[path.String()]))
	}
}

// problems adds the messages of a Kubernetes validation function.
func (v *validator) problems(name string, value any, found []string) {
	if len(found) > 0 {
		v.invalid(name, value, strings.Join(found, "; "))
	}
}

// validate reports every problem, by path in the file.
func (c *Config) validate() field.ErrorList {
	section := func(name string) *validator { return &validator{path: field.NewPath(name)} }
	errs := slices.Concat(
		c.validateRegistration(section("registration")),
		c.validateCertificate(section("certificate")),
		c.validateLeaderElection(section("leaderElection")),
		c.validateAuthentication(section("authentication")),
		c.validateServing(section("serving")),
		c.validateLog(section("log")),
		c.tracing().Validate(field.NewPath("tracing")),
		recording.Validate(&c.Recording, field.NewPath("recording")),
		c.validateRecentReviews(section("recording")),
		c.validateWebhooks(field.NewPath("webhooks")),
	)
	if err := cli.ValidateSelection("controllers", c.Controllers, controllerNames()); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("controllers"), c.Controllers, strings.TrimPrefix(err.Error(), "--controllers: ")))
	}
	if !slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Type != field.ErrorTypeRequired }) {
		errs = append(errs, c.validateDefinitions(field.NewPath("webhooks"))...)
	}
	return errs
}

// What the server does with the terms of other clients.
const (
	foreignTermsKeep   = "Keep"
	foreignTermsRefuse = "Refuse"
)

func (c *Config) validateRegistration(v *validator) field.ErrorList {
	r, settings := &c.Registration, c.AppRegistration()
	v.choice("mode", r.Mode)
	c.validateEndpoint(v)
	c.validateStaticManifests(v)
	if r.Owner != "" {
		if r.Mode != string(registration.ModeAPI) {
			v.forbidden("owner", "only with the mode api")
		}
		// Names of RBAC objects only need to be valid path segments.
		kind, name, _ := strings.Cut(r.Owner, "/")
		if !strings.EqualFold(kind, "clusterrole") || name == "" || len(content.IsPathSegmentName(name)) > 0 {
			v.invalid("owner", r.Owner, "write clusterrole/NAME; an owner of cluster-scoped objects is cluster-scoped")
		}
	}
	// The rest of the configuration is valid, so any remaining error concerns the name.
	named := registration.Config{Name: settings.Name, Endpoint: registration.Endpoint{URL: "https://127.0.0.1"}}
	if err := named.Validate(); err != nil {
		v.invalid("name", r.Name, err.Error())
	}
	if _, err := metav1.ParseToLabelSelector(r.NamespaceSelector); err != nil {
		v.invalid("namespaceSelector", r.NamespaceSelector, err.Error())
	}
	for i, namespace := range r.ExcludedNamespaces {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			v.errs = append(v.errs, field.Invalid(v.path.Child("excludedNamespaces").Index(i), namespace, problem))
		}
	}
	v.problems("ownPods", r.OwnPods, hosting.OwnPodsProblems(r.OwnPods))
	v.choice("failurePolicy", r.FailurePolicy)
	v.choice("foreignTerms", r.ForeignTerms)
	if r.ForeignTerms == foreignTermsRefuse && r.Mode != string(registration.ModeAPI) {
		v.forbidden("foreignTerms", "only with the mode api: otherwise the server does not write the configurations")
	}
	if r.TimeoutSeconds < 1 || r.TimeoutSeconds > 30 {
		v.invalid("timeoutSeconds", r.TimeoutSeconds, "the API server allows 1 to 30 seconds")
	}
	versions := v.path.Child("reviewVersions")
	if len(r.ReviewVersions) == 0 {
		v.required("reviewVersions", "choose "+cli.OneOf(choices[versions.String()]))
	}
	for i, version := range r.ReviewVersions {
		if !slices.Contains(choices[versions.String()], version) {
			v.errs = append(v.errs, field.NotSupported(versions.Index(i), version, choices[versions.String()]))
		}
		if slices.Contains(r.ReviewVersions[:i], version) {
			v.errs = append(v.errs, field.Duplicate(versions.Index(i), version))
		}
	}
	return v.errs
}

// validateEndpoint validates the server's address. With certificate files and no registration,
// the server does not need one.
func (c *Config) validateEndpoint(v *validator) {
	r, settings := &c.Registration, c.AppRegistration()
	switch {
	case settings.NoEndpoint():
		if r.Mode != string(registration.ModeNone) || c.Certificate.Source != frontdoor.SourceFiles {
			v.required("service", "--service or --url is required: the API server must know where the webhooks are")
		}
	case r.Service != "" && r.URL != "":
		v.forbidden("url", "--service and --url exclude each other: choose --service for a server in the cluster")
	case r.URL != "":
		if err := (registration.Endpoint{URL: r.URL}).Validate(); err != nil {
			v.invalid("url", field.OmitValueType{}, err.Error()) // it may contain a password
		}
	default:
		endpoint := settings.Config().Endpoint
		if endpoint.Service == nil {
			v.invalid("service", r.Service, "write NAMESPACE/NAME or NAMESPACE/NAME:PORT, with a port from 1 to 65535")
		} else if err := endpoint.Validate(); err != nil {
			v.invalid("service", r.Service, err.Error())
		}
	}
}

func (c *Config) validateStaticManifests(v *validator) {
	r := &c.Registration
	if r.Mode != string(registration.ModeManifest) {
		if r.StaticManifestsDir != "" {
			v.forbidden("staticManifestsDir", "only with the mode manifest")
		}
		return
	}
	switch {
	case r.StaticManifestsDir == "":
		v.required("staticManifestsDir", "the mode manifest writes there")
	case !filepath.IsAbs(r.StaticManifestsDir):
		v.invalid("staticManifestsDir", r.StaticManifestsDir, "must be an absolute path")
	}
	if r.Service != "" {
		v.forbidden("service", "the mode manifest needs url: kube-apiserver takes no Service in static manifests")
	}
}

func (c *Config) validateCertificate(v *validator) field.ErrorList {
	cert := &c.Certificate
	v.choice("source", cert.Source)
	if namespace, name, _ := strings.Cut(cert.AuthoritySecret, "/"); cert.AuthoritySecret != "" &&
		(len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0) {
		v.invalid("authoritySecret", cert.AuthoritySecret, "write NAMESPACE/NAME, for example sallyport-system/sallyport-authority")
	}
	files := []struct{ name, value string }{{"certFile", cert.CertFile}, {"privateKeyFile", cert.PrivateKeyFile}, {"caFile", cert.CAFile}}
	switch cert.Source {
	case frontdoor.SourceFiles:
		if cert.AuthoritySecret != "" {
			v.forbidden("authoritySecret", "only with the source authority")
		}
		for _, file := range files[:2] {
			if file.value == "" {
				v.required(file.name, "the source files needs it")
			}
		}
	case frontdoor.SourceAuthority:
		for _, file := range files {
			if file.value != "" {
				v.forbidden(file.name, "only with the source files")
			}
		}
		v.notNegative("lifetime", cert.Lifetime)
		v.notNegative("caLifetime", cert.CALifetime)
		v.notNegative("caPropagation", cert.CAPropagation)
		if cert.Lifetime.Duration > cert.CALifetime.Duration && cert.CALifetime.Duration > 0 {
			v.invalid("lifetime", cert.Lifetime.Duration.String(), "must be at most caLifetime, "+cert.CALifetime.Duration.String())
		}
	}
	return v.errs
}

func (v *validator) notNegative(name string, d metav1.Duration) {
	if d.Duration < 0 {
		v.invalid(name, d.Duration.String(), "must not be negative")
	}
}

func (c *Config) validateLeaderElection(v *validator) field.ErrorList {
	e := &c.LeaderElection
	if !e.LeaderElect {
		return nil
	}
	if e.LeaseDuration.Duration <= e.RenewDeadline.Duration {
		v.invalid("leaseDuration", e.LeaseDuration.Duration.String(), "must be longer than renewDeadline, "+e.RenewDeadline.Duration.String())
	}
	if longest := time.Duration(leaderelection.JitterFactor * float64(e.RetryPeriod.Duration)); e.RenewDeadline.Duration <= longest {
		v.invalid("renewDeadline", e.RenewDeadline.Duration.String(), "must be longer than "+longest.String()+", which is retryPeriod and a fifth")
	}
	if e.RetryPeriod.Duration <= 0 {
		v.invalid("retryPeriod", e.RetryPeriod.Duration.String(), "must be positive")
	}
	return v.errs
}

func (c *Config) validateAuthentication(v *validator) field.ErrorList {
	a := &c.Authentication
	v.choice("mode", a.Mode)
	if a.Mode == frontdoor.AuthenticationClientCA {
		if a.ClientCAFile == "" {
			v.required("clientCAFile", "the mode client-ca needs it")
		}
	} else {
		if a.ClientCAFile != "" {
			v.forbidden("clientCAFile", "only with the mode client-ca")
		}
		if len(a.ClientCommonNames) > 0 {
			v.forbidden("clientCommonNames", "only with the mode client-ca")
		}
	}
	v.choice("metrics", a.Metrics)
	if address := c.Serving.MetricsBindAddress; a.Metrics == AuthenticationDelegated && (address == "" || address == "0") {
		v.forbidden("metrics", "serving.metricsBindAddress switches metrics off")
	}
	if a.PrivatePaths != nil && *a.PrivatePaths {
		if c.Certificate.Source == frontdoor.SourceFiles {
			v.forbidden("privatePaths", "needs the certificate source authority, whose keys make the paths")
		}
		if c.Registration.Mode == string(registration.ModeNone) {
			v.forbidden("privatePaths", "needs the registration mode api: only the server knows the paths")
		}
	}
	return v.errs
}

// validateRecentReviews requires that the API server decides who may read them, over TLS.
func (c *Config) validateRecentReviews(v *validator) field.ErrorList {
	if c.Recording.RecentReviews > 0 && c.Authentication.Metrics != AuthenticationDelegated {
		v.forbidden("recentReviews", "only with authentication.metrics delegated: the API server decides who may read them")
	}
	return v.errs
}

func (c *Config) validateServing(v *validator) field.ErrorList {
	s := &c.Serving
	require := func(ok bool, name string, value any, detail string) {
		if d, is := value.(metav1.Duration); is {
			value = d.Duration.String()
		}
		if !ok {
			v.invalid(name, value, detail)
		}
	}
	// A name that ends with a number is none: it is an IP address that is wrong.
	require(s.BindAddress == "" || net.ParseIP(s.BindAddress) != nil || !endsWithNumber.MatchString(s.BindAddress), "bindAddress", s.BindAddress, "must be an IP address or a host name")
	require(s.SecurePort >= 0 && s.SecurePort <= 65535, "securePort", s.SecurePort, "must be between 0 and 65535")
	if address := s.MetricsBindAddress; address != "" && address != "0" {
		_, _, err := net.SplitHostPort(address)
		require(err == nil, "metricsBindAddress", address, "write HOST:PORT or :PORT, or 0 to switch it off")
	}
	require(s.ReadHeaderTimeout.Duration > 0, "readHeaderTimeout", s.ReadHeaderTimeout, "must be positive")
	require(s.ReadTimeout.Duration > 0, "readTimeout", s.ReadTimeout, "must be positive")
	require(s.WriteTimeout.Duration >= maxTimeout, "writeTimeout", s.WriteTimeout, "must be at least 30s, the longest timeout of a webhook")
	require(s.IdleTimeout.Duration > apiServerIdleTimeout, "idleTimeout", s.IdleTimeout, "must be above 1m30s, when kube-apiserver closes idle connections")
	require(s.MaxHeaderBytes > 0, "maxHeaderBytes", s.MaxHeaderBytes, "must be positive")
	require(s.MaxBodyBytes > 0, "maxBodyBytes", s.MaxBodyBytes, "must be positive")
	require(s.MaxBytesInFlight == 0 || s.MaxBytesInFlight > s.MaxBodyBytes, "maxBytesInFlight", s.MaxBytesInFlight, "must be above maxBodyBytes")
	require(s.MinBodyRate >= 0, "minBodyRate", s.MinBodyRate, "must not be negative")
	require(s.MaxConcurrentReviews >= 0, "maxConcurrentReviews", s.MaxConcurrentReviews, "must not be negative")
	require(s.MaxWaitingReviews >= 0, "maxWaitingReviews", s.MaxWaitingReviews, "must not be negative")
	require(s.MaxConnections >= 0, "maxConnections", s.MaxConnections, "must not be negative")
	require(s.MaxMetricsConnections >= 0, "maxMetricsConnections", s.MaxMetricsConnections, "must not be negative")
	require(s.DrainMin.Duration >= 0, "drainMin", s.DrainMin, "must not be negative")
	require(s.DrainTimeout.Duration >= s.DrainMin.Duration, "drainTimeout", s.DrainTimeout, "must not be below drainMin, "+s.DrainMin.Duration.String())
	return v.errs
}

func (c *Config) validateLog(v *validator) field.ErrorList {
	v.choice("level", c.Log.Level)
	v.choice("format", c.Log.Format)
	if c.Log.Verbosity < 0 {
		v.invalid("verbosity", c.Log.Verbosity, "must not be negative")
	}
	return v.errs
}

// validateWebhooks reports problems in the entries, except in their settings.
func (c *Config) validateWebhooks(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range c.Webhooks {
		errs = append(errs, validateEntry(&c.Webhooks[i], path.Index(i))...)
		if slices.ContainsFunc(c.Webhooks[:i], func(other configv1alpha1.Webhook) bool { return other.Name == c.Webhooks[i].Name }) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), c.Webhooks[i].Name))
		}
	}
	if len(c.Enabled()) == 0 {
		errs = append(errs, field.Required(path, "enables none: name some of "+cli.OneOf(Names())))
	}
	if len(errs) == 0 {
		errs = c.validatePlaces(path)
	}
	return append(errs, c.validateGuard()...)
}

func validateEntry(w *configv1alpha1.Webhook, path *field.Path) field.ErrorList {
	v := &validator{path: path}
	if !slices.Contains(Names(), w.Name) {
		v.errs = append(v.errs, field.NotSupported(path.Child("name"), w.Name, Names()))
	}
	for _, choice := range []struct {
		name  string
		value *string
	}{{"failurePolicy", w.FailurePolicy}, {"matchPolicy", w.MatchPolicy}, {"reinvocationPolicy", w.ReinvocationPolicy}} {
		if known := choices["webhooks."+choice.name]; choice.value != nil && !slices.Contains(known, *choice.value) {
			v.errs = append(v.errs, field.NotSupported(path.Child(choice.name), *choice.value, known))
		}
	}
	if w.TimeoutSeconds != nil && (*w.TimeoutSeconds < 1 || *w.TimeoutSeconds > 30) {
		v.invalid("timeoutSeconds", *w.TimeoutSeconds, "the API server allows 1 to 30 seconds")
	}
	v.selector("namespaceSelector", w.NamespaceSelector)
	v.selector("objectSelector", w.ObjectSelector)
	return append(v.errs, conditions.Validate(w.MatchConditions, path.Child("matchConditions"))...)
}

func (v *validator) selector(name string, selector *metav1.LabelSelector) {
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		v.invalid(name, field.OmitValueType{}, err.Error())
	}
}

// validateGuard reports settings that conflict with a backstop.
func (c *Config) validateGuard() field.ErrorList {
	if c.Settings.PodDefault.Guard != GuardBackstop || !c.Has("poddefault") {
		return nil
	}
	var errs field.ErrorList
	if c.Registration.Mode == string(registration.ModeManifest) {
		errs = append(errs, field.Forbidden(c.guardPath(), "a backstop is not for the registration mode manifest: static manifests hold no policy with a parameter"))
	}
	if !selects(c.Controllers, backstop.Name) {
		errs = append(errs, field.Forbidden(c.guardPath(), "a backstop needs the controller "+backstop.Name+": add it to controllers"))
	}
	return errs
}

func (c *Config) guardPath() *field.Path {
	i := slices.IndexFunc(c.Webhooks, func(w configv1alpha1.Webhook) bool { return w.Name == "poddefault" })
	return field.NewPath("webhooks").Index(i).Child("settings", "guard")
}

// validateDefinitions reports definitions that the API server would reject.
func (c *Config) validateDefinitions(path *field.Path) field.ErrorList {
	settings := c.AppRegistration()
	var errs field.ErrorList
	for i := range c.Webhooks {
		for _, b := range c.Enabled() {
			if b.Name != c.Webhooks[i].Name {
				continue
			}
			webhooks, err := b.defined(c, NoSources())
			if err == nil {
				_, err = settings.Apply(webhooks)
			}
			if err != nil {
				errs = append(errs, field.Invalid(path.Index(i), field.OmitValueType{}, err.Error()))
			}
		}
	}
	return errs
}
