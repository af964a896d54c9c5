// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/cmd/internal/serve/conditions"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/recording"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
	"github.com/sallyport-io/sallyport/internal/hosting"
)

// authenticationModes are the modes of authentication of serve.
var authenticationModes = hosting.AuthenticationModes(AuthenticationDelegated)

// validate reports every problem, by path in the file.
func (c *Config) validate() field.ErrorList {
	errs := slices.Concat(
		c.Hosting().Validate(),
		tags.Validate(&c.Log, field.NewPath("log")),
		c.Tracing.Validate(field.NewPath("tracing")),
		recording.Validate(&c.Recording, field.NewPath("recording")),
		c.validateRecentReviews(field.NewPath("recording", "recentReviews")),
		c.validateWebhooks(field.NewPath("webhooks")),
	)
	errs = append(errs, setting.ValidateSelection("controllers", c.Controllers, controllerNames())...)
	if c.Registration.ConversionService != nil {
		errs = append(errs, field.Forbidden(field.NewPath("registration", "conversionService"), "only for applications that convert custom resources"))
	}
	if !slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Type != field.ErrorTypeRequired }) {
		errs = append(errs, c.validateDefinitions(field.NewPath("webhooks"))...)
	}
	return errs
}

// validateRecentReviews requires that the API server decides who may read them, over TLS.
func (c *Config) validateRecentReviews(path *field.Path) field.ErrorList {
	if c.Recording.RecentReviews > 0 && c.Authentication.Metrics != AuthenticationDelegated {
		return field.ErrorList{field.Forbidden(path, "only with authentication.metrics Delegated: the API server decides who may read them")}
	}
	return nil
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
	for _, b := range c.Enabled() {
		if b.validate != nil {
			errs = append(errs, b.validate(c)...)
		}
	}
	return errs
}

func validateEntry(w *configv1alpha1.Webhook, path *field.Path) field.ErrorList {
	errs := tags.Validate(w, path)
	if !slices.Contains(Names(), w.Name) {
		errs = append(errs, field.NotSupported(path.Child("name"), w.Name, Names()))
	}
	if w.TimeoutSeconds != nil && (*w.TimeoutSeconds < 1 || *w.TimeoutSeconds > 30) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *w.TimeoutSeconds, "the API server allows 1 to 30 seconds"))
	}
	for i, selector := range []*metav1.LabelSelector{w.NamespaceSelector, w.ObjectSelector} {
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			errs = append(errs, field.Invalid(path.Child([]string{"namespaceSelector", "objectSelector"}[i]), field.OmitValueType{}, err.Error()))
		}
	}
	return append(errs, conditions.Validate(w.MatchConditions, path.Child("matchConditions"))...)
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
				_, err = hosting.Apply(&settings, webhooks)
			}
			if err != nil {
				errs = append(errs, field.Invalid(path.Index(i), field.OmitValueType{}, err.Error()))
			}
		}
	}
	return errs
}
