// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"log/slog"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
	"github.com/sallyport-io/sallyport/serving/certificate"
)

// Settings configure a run. Start from [App.DefaultSettings]. They correspond to the
// flags of [App.Command].
type Settings struct {
	// Client is the client configuration. If it is nil, Kubeconfig is used.
	Client *rest.Config `json:"-"`
	// Kubeconfig is the path of the kubeconfig file. If empty, the service account of the pod.
	Kubeconfig string `json:"kubeconfig,omitempty" flag:"kubeconfig" value:"file" group:"API server"`
	// Logger defaults to slog.Default().
	Logger *slog.Logger `json:"-"`

	Registration   registration.Settings               `json:"registration"`
	Certificate    certificate.Settings                `json:"certificate"`
	LeaderElection registration.LeaderElectionSettings `json:"leaderElection"`
	Authentication serving.AuthenticationSettings      `json:"authentication"`
	Serving        serving.Options                     `json:"serving"`

	// Webhooks are the names of the webhooks to serve: foo serves foo, -foo does not, *
	// serves all that are not named. If empty, none, nor converters and webhooks of
	// components. Default "*".
	Webhooks []string `json:"webhooks" flag:"webhooks" value:"names" group:"Webhooks"`
	// Controllers are the names of the controllers to run: foo runs foo, -foo does not, *
	// runs all that are not named. If empty, none. Default "*".
	Controllers []string `json:"controllers" flag:"controllers" value:"names" group:"Webhooks"`
}

// DefaultSettings returns the default settings.
func (a *App) DefaultSettings() Settings {
	s := Settings{Webhooks: []string{"*"}, Controllers: []string{"*"}}
	hosted(&s, nil).SetDefaults(a.name)
	return s
}

// hosted returns the settings as the host knows them, for these modes of authentication.
func hosted(s *Settings, modes []string) *hosting.Settings {
	return &hosting.Settings{
		Registration: &s.Registration, Certificate: &s.Certificate, LeaderElection: &s.LeaderElection,
		Authentication: &s.Authentication, Serving: &s.Serving.Settings, Modes: modes,
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
	err := setting.Join(slices.Concat(
		setting.ValidateSelection("webhooks", s.Webhooks, webhooks), setting.ValidateSelection("controllers", s.Controllers, controllers),
	))
	if err == nil && !c.serves() && len(c.controllers) == 0 {
		err = errors.New("neither webhooks nor controllers are selected: there is nothing to run")
	}
	return c, err
}

// validate reports all problems in the settings that the chosen webhooks and
// controllers use. It returns the client configuration, or nil if nothing needs one.
func (a *App) validate(s *Settings, c *chosen) (*rest.Config, error) {
	var problems field.ErrorList
	all := hosted(s, a.authenticationNames())
	needsClient := c.managed() || len(c.components) > 0
	if c.serves() {
		problems = all.Validate()
		_, _, inSecret := hosting.AuthoritySecret(&s.Certificate, hosting.Config(&s.Registration).Endpoint)
		needsClient = needsClient || inSecret || hosting.Delegates(&s.Authentication) || s.Registration.Mode == registration.ModeAPI
	} else {
		problems = all.ValidateLeaderElection()
	}
	errs := []error{setting.Join(problems)}
	client := s.Client
	if client == nil && needsClient {
		var err error
		client, err = ClientConfig(s.Kubeconfig, a.name+"/"+a.version)
		errs = append(errs, err)
	}
	return client, errors.Join(errs...)
}
