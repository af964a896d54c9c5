// SPDX-License-Identifier: Apache-2.0

// Package serve implements `sallyport serve`: its configuration, the built-in webhooks, and
// how they follow the configuration file while the server runs. The configuration is one value,
// from defaults, the file and flags in that order.
package serve

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	frontdoor "github.com/sallyport-io/sallyport"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/hosting/logging"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
	"github.com/sallyport-io/sallyport/serving"
)

// Name is the name of the application. Leases and the authority's Secret derive their names
// from it.
const Name = "sallyport"

// Config is a configuration with the decoded settings of the built-in webhooks.
type Config struct {
	configv1alpha1.SallyportConfiguration
	Settings Settings

	data  []byte          // contents of the file; nil without one
	given *setting.Given  // the flags
	set   map[string]bool // fields set by flags
}

// Default returns the default configuration: the library's defaults, and what serve knows of the
// ready-made webhooks.
func Default() *Config {
	c := &Config{
		SallyportConfiguration: configv1alpha1.SallyportConfiguration{
			TypeMeta:    metav1.TypeMeta{APIVersion: configv1alpha1.APIVersion, Kind: configv1alpha1.Kind},
			Log:         logging.DefaultSettings(),
			Recording:   configv1alpha1.Recording{MaxSizeMegabytes: 10, MaxFiles: 5, MaxAgeDays: 7, RecentMegabytes: 8},
			Webhooks:    enabledByDefault(),
			Controllers: []string{"*"},
		},
		Settings: DefaultSettings(),
	}
	c.Hosting().SetDefaults(Name)
	c.Registration.FailurePolicy, c.Registration.TimeoutSeconds = string(admissionregistrationv1.Fail), 5
	c.Registration.ReviewVersions = reviewversion.All()
	c.Authentication.PrivatePaths = hosting.PrivatePathsAuto
	return c
}

// enabledByDefault returns the entries of the webhooks that are enabled without a configuration.
func enabledByDefault() (entries []configv1alpha1.Webhook) {
	for _, b := range Builtins() {
		if b.byDefault {
			entries = append(entries, configv1alpha1.Webhook{Name: b.Name})
		}
	}
	return entries
}

// Hosting returns the settings that every application has.
func (c *Config) Hosting() *hosting.Settings {
	return &hosting.Settings{
		Registration: &c.Registration, Certificate: &c.Certificate, LeaderElection: &c.LeaderElection,
		Authentication: &c.Authentication, Serving: &c.Serving, Modes: authenticationModes,
	}
}

// Load returns the defaults, overridden by the file, overridden by the flags of [Flags] that were
// set. Path may be empty, and given nil. The error lists every problem, those in the file
// with their line. A missing required field is not an error if it is listed in optional.
func Load(path string, given *setting.Given, optional ...string) (*Config, error) {
	c := Default()
	c.given = given
	p := &problems{}
	if path != "" {
		if err := p.read(path, c); err != nil {
			return nil, err
		}
	}
	var err error
	c.set, err = given.Override(c, Flags())
	p.add(err)
	for i := range c.Webhooks {
		p.readSettings(c, i)
	}
	for _, err := range c.validate() {
		if err.Type != field.ErrorTypeRequired || !slices.Contains(optional, err.Field) {
			p.field(c, err)
		}
	}
	return c, p.err()
}

// durations are written as in a file.
var durations = json.MarshalFunc(func(d time.Duration) ([]byte, error) { return []byte(strconv.Quote(d.String())), nil })

// Complete returns the configuration as JSON, with an entry for each built-in webhook and all
// their settings.
func (c *Config) Complete() ([]byte, error) {
	out := c.SallyportConfiguration
	out.Webhooks = nil
	for _, b := range Builtins() {
		entry := configv1alpha1.Webhook{Name: b.Name}
		if given := c.entry(b.Name); given != nil {
			entry = *given
		}
		enabled := c.Has(b.Name)
		entry.Enabled = &enabled
		var err error
		if entry.Settings, err = json.Marshal(c.Settings[b.Name], json.Deterministic(true)); err != nil {
			return nil, err
		}
		out.Webhooks = append(out.Webhooks, entry)
	}
	return json.Marshal(&out, json.WithMarshalers(durations), json.Deterministic(true))
}

// entry returns the configuration's entry for a built-in webhook, or nil.
func (c *Config) entry(name string) *configv1alpha1.Webhook {
	for i := range c.Webhooks {
		if c.Webhooks[i].Name == name {
			return &c.Webhooks[i]
		}
	}
	return nil
}

// Has reports whether a built-in webhook is enabled.
func (c *Config) Has(name string) bool {
	entry := c.entry(name)
	return entry != nil && (entry.Enabled == nil || *entry.Enabled)
}

// AppRegistration returns the registration settings.
func (c *Config) AppRegistration() registration.Settings {
	settings := c.Registration
	settings.Adjust = c.adjust
	return settings
}

// HasFile reports whether the configuration comes from a file. Otherwise that of a server that runs may differ.
func (c *Config) HasFile() bool { return c.data != nil }

// appSettings returns the settings of the application.
func (c *Config) appSettings() frontdoor.Settings {
	return frontdoor.Settings{
		Kubeconfig: c.Kubeconfig, Serving: serving.Options{Settings: c.Serving}, Certificate: c.Certificate,
		Registration: c.AppRegistration(), LeaderElection: c.LeaderElection, Authentication: c.Authentication,
		Webhooks: []string{"*"}, Controllers: []string{"*"},
	}
}

// OfDeployment lists fields that a server requires. Commands that start no server do not need
// them.
var OfDeployment = append([]string{"registration.service"}, hosting.FilesOfServers...)
