// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/podtemplate"
	"github.com/sallyport-io/sallyport/internal/cli"
)

const podTemplateName = "podtemplate"

func podTemplateBuiltin() Builtin {
	return Builtin{
		Name:  podTemplateName,
		Short: "warn of workloads whose pods PodDefaults would refuse",
		Docs:  "docs/webhooks/podtemplate.md",
		settings: func() settings {
			s := podtemplate.DefaultSettings()
			return &s
		},
		webhooks: func(c *Config, from Sources) ([]admission.Webhook, error) {
			previews, err := c.previews(from)
			if err != nil {
				return nil, err
			}
			return podtemplate.New(*c.Settings[podTemplateName].(*podtemplate.Settings), previews)
		},
		adjust:   adjustPodTemplate,
		validate: validatePodTemplate,
	}
}

// adjustPodTemplate makes the webhook fail open and soon, whatever the others do.
func adjustPodTemplate(c *Config, w *admission.Webhook) {
	entry := c.entry(podTemplateName)
	if entry == nil || !names(entry, w.Name) {
		return
	}
	w.FailurePolicy = admissionregistrationv1.Ignore
	if entry.TimeoutSeconds == nil {
		w.TimeoutSeconds = min(w.TimeoutSeconds, podtemplate.TimeoutSeconds)
	}
}

// validatePodTemplate requires a webhook for pods to ask, and the failure policy Ignore.
func validatePodTemplate(c *Config) (errs field.ErrorList) {
	at := field.NewPath("webhooks").Index(slices.IndexFunc(c.Webhooks, func(w configv1alpha1.Webhook) bool { return w.Name == podTemplateName }))
	var asked []string
	previews := false
	for _, b := range Builtins() {
		if b.previews != nil {
			asked, previews = append(asked, b.Name), previews || c.Has(b.Name)
		}
	}
	if !previews {
		errs = append(errs, field.Forbidden(at, "it warns of what other webhooks do with pods: enable "+cli.OneOf(asked)+", too"))
	}
	if policy := c.entry(podTemplateName).FailurePolicy; policy != nil && *policy != string(admissionregistrationv1.Ignore) {
		errs = append(errs, field.Invalid(at.Child("failurePolicy"), *policy, "the webhook only warns, and is registered with Ignore: leave it out"))
	}
	return errs
}
