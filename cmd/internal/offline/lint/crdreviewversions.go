// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

func crdReviewVersions() Rule {
	return Rule{
		ID: "crd-review-versions", Group: groupCRD, Severities: []Severity{Error, Warning}, Source: fromAPI,
		What: "conversionReviewVersions has v1 first.",
		Why:  "The API server uses the first entry that it knows; v1beta1 skips the checks of UID and kind.",
		Fix:  "Set conversionReviewVersions: [v1].",
		check: func(c *checker) {
			for _, d := range c.converting() {
				versions := d.value.Spec.Conversion.Webhook.ConversionReviewVersions
				list := "[" + strings.Join(versions, " ") + "]"
				known := slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return !reviewversion.Known(v) })
				if len(known) == 0 {
					c.object(d.Object, Error, conversionPath, "conversionReviewVersions %s has no version that the API server knows", list)
				} else if known[0] != reviewversion.V1 {
					c.object(d.Object, Warning, conversionPath+"/conversionReviewVersions", "conversionReviewVersions %s should start with v1", list)
				}
			}
		},
	}
}

const conversionPath = "/spec/conversion/webhook"

// converting returns the definitions with a conversion webhook.
func (in *Inventory) converting() []*typed[apiextensionsv1.CustomResourceDefinition] {
	var out []*typed[apiextensionsv1.CustomResourceDefinition]
	for _, d := range in.definitions {
		if conversion := d.value.Spec.Conversion; conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter && conversion.Webhook != nil {
			out = append(out, d)
		}
	}
	return out
}

// conversionClient returns the client configuration of the conversion webhook, or nil.
func conversionClient(d *typed[apiextensionsv1.CustomResourceDefinition]) *admissionregistrationv1.WebhookClientConfig {
	conversion := d.value.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil
	}
	config := conversion.Webhook.ClientConfig
	out := &admissionregistrationv1.WebhookClientConfig{URL: config.URL, CABundle: config.CABundle}
	if s := config.Service; s != nil {
		out.Service = &admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: s.Port}
	}
	return out
}
