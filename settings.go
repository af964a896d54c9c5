// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// Settings configure a run. Start from [App.DefaultSettings]. They correspond to the
// flags of [App.Command].
type Settings struct {
	// Client is the client configuration. If it is nil, Kubeconfig is the path of a
	// kubeconfig file, or empty for the pod's service account.
	Client     *rest.Config
	Kubeconfig string
	// Logger defaults to slog.Default().
	Logger *slog.Logger

	Serving        serving.Options
	Authentication AuthenticationSettings
	Certificate    CertificateSettings
	Registration   RegistrationSettings
	LeaderElection LeaderElectionSettings

	// Webhooks and Controllers select what runs here: "foo" enables it, "-foo" disables
	// it, and "*" enables everything not named. Default "*". Converters and webhooks of
	// components are all enabled, or all disabled if nothing is selected.
	Webhooks, Controllers []string
}

// The parts of [Settings], and values of some fields.
type (
	// AuthenticationSettings configure who may call admission webhooks.
	AuthenticationSettings = hosting.AuthenticationSettings
	// CertificateSettings configure the source of the serving certificate.
	CertificateSettings = hosting.CertificateSettings
	// RegistrationSettings configure how the API server reaches the webhooks, which
	// component registers them, and when they are called.
	RegistrationSettings = hosting.RegistrationSettings
	// LeaderElectionSettings configure which replica does work that only one may do.
	LeaderElectionSettings = hosting.LeaderElectionSettings
)

const (
	// SourceAuthority issues the serving certificate from an authority that all
	// replicas share.
	SourceAuthority = hosting.SourceAuthority
	// SourceFiles reads the serving certificate from files, for example ones that
	// cert-manager renews.
	SourceFiles = hosting.SourceFiles
	// AuthenticationNone accepts any caller. [WithAuthentication] adds other modes.
	AuthenticationNone = hosting.AuthenticationNone
	// AuthenticationClientCA accepts callers with a client certificate of a CA.
	AuthenticationClientCA = hosting.AuthenticationClientCA
	// PrivatePathsAuto makes paths private once all replicas support it.
	PrivatePathsAuto = hosting.PrivatePathsAuto
)

// DefaultCertificateSettings returns the defaults for an application with this name.
func DefaultCertificateSettings(name string) CertificateSettings {
	return hosting.DefaultCertificateSettings(name)
}

// DefaultSettings returns the default settings.
func (a *App) DefaultSettings() Settings {
	return Settings{
		Serving:     serving.DefaultOptions(),
		Certificate: DefaultCertificateSettings(a.name),
		Registration: RegistrationSettings{
			Mode: registration.ModeAPI, Name: a.name,
			ExcludedNamespaces: []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease, metav1.NamespacePublic},
			OwnPods:            "app.kubernetes.io/name=" + a.name,
		},
		LeaderElection: hosting.DefaultLeaderElection(),
		Webhooks:       []string{"*"},
		Controllers:    []string{"*"},
	}
}

// Validate reports all problems in the settings. It changes nothing.
func (a *App) Validate(s Settings) error {
	c, err := a.choose(&s)
	if err != nil {
		return err
	}
	_, err = a.validate(&s, c)
	return err
}

// chosen holds the webhooks and controllers of a run.
type chosen struct {
	webhooks    []admission.Webhook
	converters  []conversion.Converter
	components  []component
	controllers []controller
	kinds       []CachedKind
}

// managed reports whether the run has a manager.
func (c *chosen) managed() bool { return len(c.controllers)+len(c.kinds) > 0 }

func (c *chosen) serves() bool {
	return len(c.webhooks) > 0 || len(c.converters) > 0 || len(c.components) > 0
}

// choose applies the selections.
func (a *App) choose(s *Settings) (*chosen, error) {
	c := &chosen{kinds: a.kinds}
	var webhooks, controllers []string
	for _, webhook := range a.webhooks {
		webhooks = append(webhooks, webhook.Name)
		if cli.Selects(s.Webhooks, webhook.Name) {
			c.webhooks = append(c.webhooks, webhook)
		}
	}
	if len(s.Webhooks) > 0 {
		c.components, c.converters = a.components, a.converters
	}
	for _, controller := range a.controllers {
		controllers = append(controllers, controller.name)
		if cli.Selects(s.Controllers, controller.name) {
			c.controllers = append(c.controllers, controller)
		}
	}
	err := errors.Join(
		hosting.ValidateSelection("webhooks", s.Webhooks, webhooks), hosting.ValidateSelection("controllers", s.Controllers, controllers),
	)
	if err == nil && !c.serves() && len(c.controllers) == 0 {
		err = errors.New("neither webhooks nor controllers are selected: there is nothing to run")
	}
	return c, err
}

// validate reports all problems in the settings that the chosen webhooks and
// controllers use. It returns the client configuration, or nil if nothing needs one.
func (a *App) validate(s *Settings, c *chosen) (*rest.Config, error) {
	var errs []error
	needsClient := c.managed() || len(c.components) > 0
	if c.serves() {
		filesOnly := s.Registration.Mode == registration.ModeNone && s.Registration.NoEndpoint() && s.Certificate.Source == SourceFiles
		if !filesOnly { // otherwise the endpoint is not needed
			errs = append(errs, s.Registration.ValidateEndpoint())
		}
		errs = append(errs, s.Registration.ValidateMode(), s.Registration.Validate(), s.Registration.ValidateConversion(),
			s.Certificate.Validate(), s.Authentication.Validate(a.authenticationNames(), &s.Serving, &s.Certificate, &s.Registration), s.Serving.ValidateSettings())
		_, _, inSecret := s.Certificate.AuthoritySecret(s.Registration.Config().Endpoint)
		needsClient = needsClient || inSecret || s.Authentication.Delegates() || s.Registration.Mode == registration.ModeAPI
	}
	errs = append(errs, s.LeaderElection.Validate())
	client := s.Client
	if client == nil && needsClient {
		var err error
		client, err = ClientConfig(s.Kubeconfig, a.name+"/"+a.version)
		errs = append(errs, err)
	}
	return client, errors.Join(errs...)
}
