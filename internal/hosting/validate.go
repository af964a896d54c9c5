// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// FilesOfServers are required fields whose files and directories only a server has.
var FilesOfServers = []string{
	"registration.staticManifestsDir", "certificate.certFile", "certificate.privateKeyFile", "authentication.clientCAFile",
}

// Validate reports every problem, by path. It is the only validation of these settings: a file, a
// flag and a Go value with the same problem have the same error.
func (s Settings) Validate() field.ErrorList {
	v := &validator{settings: s}
	registration, certificate, authentication := field.NewPath("registration"), field.NewPath("certificate"), field.NewPath("authentication")
	v.errs = slices.Concat(tags.Validate(s.Registration, registration), tags.Validate(s.Certificate, certificate), tags.Validate(s.Authentication, authentication))
	v.registration(registration)
	v.endpoint(registration)
	v.certificate(certificate)
	v.authentication(authentication)
	v.leaderElection(field.NewPath("leaderElection"))
	return append(v.errs, s.Serving.Validate(field.NewPath("serving"))...)
}

// ValidateLeaderElection is Validate for a process that serves no webhooks.
func (s Settings) ValidateLeaderElection() field.ErrorList {
	v := &validator{settings: s}
	v.leaderElection(field.NewPath("leaderElection"))
	return v.errs
}

// ValidateReferences validates the Service and the Secret, which may both be empty.
func ValidateReferences(r *registration.Settings, c *certificate.Settings) field.ErrorList {
	v := &validator{}
	if r.Service != nil {
		v.service(field.NewPath("registration", "service"), r.Service)
	}
	v.secret(field.NewPath("certificate", "authoritySecret"), c.AuthoritySecret)
	return v.errs
}

// validator collects the problems of settings.
type validator struct {
	settings Settings
	errs     field.ErrorList
}

func (v *validator) invalid(path *field.Path, value any, detail string) {
	if d, ok := value.(time.Duration); ok {
		value = d.String()
	}
	v.errs = append(v.errs, field.Invalid(path, value, detail))
}

func (v *validator) required(path *field.Path, detail string) {
	v.errs = append(v.errs, field.Required(path, detail))
}

func (v *validator) forbidden(path *field.Path, detail string) {
	v.errs = append(v.errs, field.Forbidden(path, detail))
}

func (v *validator) choice(path *field.Path, value string) {
	if known := Choices(strings.TrimRight(path.String(), "[0123456789]"), v.settings.Modes); !slices.Contains(known, value) {
		v.errs = append(v.errs, field.NotSupported(path, value, known))
	}
}

// problems adds the messages of a Kubernetes validation function.
func (v *validator) problems(path *field.Path, value string, found []string) {
	if len(found) > 0 {
		v.invalid(path, value, strings.Join(found, "; "))
	}
}

func (v *validator) registration(path *field.Path) {
	r := v.settings.Registration
	v.staticManifests(path)
	if r.Owner != "" {
		// Names of RBAC objects only need to be valid path segments.
		kind, name, _ := strings.Cut(r.Owner, "/")
		if !strings.EqualFold(kind, "clusterrole") || slices.Contains([]string{"", ".", ".."}, name) || strings.ContainsAny(name, "/%") {
			v.invalid(path.Child("owner"), r.Owner, "write clusterrole/NAME; an owner of cluster-scoped objects is cluster-scoped")
		}
	}
	// The rest of the configuration is valid, so any error is about the name.
	if err := (registration.Config{Name: r.Name, Endpoint: registration.Endpoint{URL: "https://127.0.0.1"}}).Validate(); err != nil {
		v.invalid(path.Child("name"), r.Name, strings.TrimPrefix(err.Error(), "name "+strconv.Quote(r.Name)+": "))
	}
	if _, err := metav1.LabelSelectorAsSelector(r.NamespaceSelector); err != nil {
		v.invalid(path.Child("namespaceSelector"), field.OmitValueType{}, err.Error())
	}
	for i, namespace := range r.ExcludedNamespaces {
		v.problems(path.Child("excludedNamespaces").Index(i), namespace, validation.IsDNS1123Label(namespace))
	}
	v.problems(path.Child("ownPods"), r.OwnPods, OwnPodsProblems(r.OwnPods))
	if r.ForeignTerms == ForeignTermsRefuse && r.Mode != registration.ModeAPI {
		v.forbidden(path.Child("foreignTerms"), "only with the mode API: otherwise the server does not write the configurations")
	}
	if r.TimeoutSeconds < 0 || r.TimeoutSeconds > 30 {
		v.invalid(path.Child("timeoutSeconds"), r.TimeoutSeconds, "the API server allows 1 to 30 seconds")
	}
	versions := path.Child("reviewVersions")
	for i, version := range r.ReviewVersions {
		v.choice(versions.Index(i), version)
		if slices.Contains(r.ReviewVersions[:i], version) {
			v.errs = append(v.errs, field.Duplicate(versions.Index(i), version))
		}
	}
}

func (v *validator) staticManifests(path *field.Path) {
	r := v.settings.Registration
	if r.StaticManifestsDir != "" && !filepath.IsAbs(r.StaticManifestsDir) {
		v.invalid(path.Child("staticManifestsDir"), r.StaticManifestsDir, "must be an absolute path")
	}
	if r.Mode == registration.ModeManifest && r.Service != nil {
		v.forbidden(path.Child("service"), "the mode Manifest needs url: kube-apiserver takes no Service in static manifests")
	}
}

// endpoint validates the addresses. With certificate files and no registration, the server needs
// none.
func (v *validator) endpoint(path *field.Path) {
	r := v.settings.Registration
	switch {
	case r.Service == nil && r.URL == "":
		if r.Mode != registration.ModeNone || v.settings.Certificate.Source != certificate.SourceFiles {
			v.required(path.Child("service"), "set it or url: the API server must know where the webhooks are")
		}
	case r.Service != nil && r.URL != "":
		v.forbidden(path.Child("url"), "not together with service, which is for a server in the cluster")
	case r.URL != "":
		if err := (registration.Endpoint{URL: r.URL}).Validate(); err != nil {
			v.invalid(path.Child("url"), field.OmitValueType{}, err.Error()) // it may contain a password
		}
	default:
		v.service(path.Child("service"), r.Service)
	}
	if r.ConversionService == nil {
		return
	}
	if r.Service == nil {
		v.forbidden(path.Child("conversionService"), "requires service; with url, converters are called there too")
		return
	}
	v.service(path.Child("conversionService"), r.ConversionService)
}

func (v *validator) service(path *field.Path, service *registration.Service) {
	part := func(path *field.Path, value string) {
		if value == "" {
			v.required(path, "a Service has a namespace and a name: NAMESPACE/NAME in a flag")
			return
		}
		v.problems(path, value, validation.IsDNS1123Label(value))
	}
	part(path.Child("namespace"), service.Namespace)
	part(path.Child("name"), service.Name)
	if service.Port < 0 || service.Port > 65535 {
		v.invalid(path.Child("port"), service.Port, "must be between 1 and 65535, or 0 for 443")
	}
}

func (v *validator) secret(path *field.Path, value string) {
	namespace, name, _ := strings.Cut(value, "/")
	if value != "" && (len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0) {
		v.invalid(path, value, "write NAMESPACE/NAME, for example sallyport-system/sallyport-authority")
	}
}

func (v *validator) certificate(path *field.Path) {
	c := v.settings.Certificate
	v.secret(path.Child("authoritySecret"), c.AuthoritySecret)
	if c.Source != certificate.SourceAuthority {
		return
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"lifetime", c.Lifetime}, {"caLifetime", c.CALifetime}, {"caPropagation", c.CAPropagation}} {
		if d.value <= 0 {
			v.invalid(path.Child(d.name), d.value, "must be positive")
		}
	}
	if c.Lifetime > c.CALifetime && c.CALifetime > 0 {
		v.invalid(path.Child("lifetime"), c.Lifetime, "must be at most caLifetime, "+c.CALifetime.String())
	}
}

func (v *validator) authentication(path *field.Path) {
	a := v.settings.Authentication
	v.choice(path.Child("mode"), a.Mode)
	v.choice(path.Child("metrics"), a.Metrics)
	if a.Metrics != serving.AuthenticationNone && !v.settings.Serving.ServesMetrics() {
		v.forbidden(path.Child("metrics"), "serving.metricsBindAddress disables metrics")
	}
	if a.PrivatePaths != PrivatePathsAlways {
		return
	}
	if v.settings.Certificate.Source == certificate.SourceFiles {
		v.forbidden(path.Child("privatePaths"), "needs the certificate source Authority, whose keys make the paths")
	}
	if v.settings.Registration.Mode == registration.ModeNone {
		v.forbidden(path.Child("privatePaths"), "needs the registration mode API: only the server knows the paths")
	}
}

func (v *validator) leaderElection(path *field.Path) {
	e := v.settings.LeaderElection
	if e.Namespace != "" {
		v.problems(path.Child("namespace"), e.Namespace, validation.IsDNS1123Label(e.Namespace))
	}
	if !e.LeaderElect {
		return
	}
	if e.LeaseDuration <= e.RenewDeadline {
		v.invalid(path.Child("leaseDuration"), e.LeaseDuration, "must be longer than renewDeadline, "+e.RenewDeadline.String())
	}
	if least := time.Duration(leaderelection.JitterFactor * float64(e.RetryPeriod)); e.RenewDeadline <= least {
		v.invalid(path.Child("renewDeadline"), e.RenewDeadline, "must be longer than "+least.String()+", which is retryPeriod and a fifth")
	}
	if e.RetryPeriod <= 0 {
		v.invalid(path.Child("retryPeriod"), e.RetryPeriod, "must be positive")
	}
}
