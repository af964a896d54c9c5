// SPDX-License-Identifier: Apache-2.0

package lint

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

func crdClientConfig() Rule {
	return Rule{
		ID: "crd-client-config", Group: groupCRD, Severities: []Severity{Error}, Source: fromAPI,
		What: "The conversion strategy is None without a webhook, or Webhook with one, which has either url or service; Service, port and path exist and are served.",
		Why:  "Otherwise no object can be read in another version than the stored one.",
		Fix:  "Correct spec.conversion.webhook.clientConfig, or the Service.",
		check: func(c *checker) {
			for _, d := range c.definitions {
				checkStrategy(c, d)
			}
			for _, d := range c.converting() {
				client := conversionClient(d)
				if client == nil || (client.URL == nil) == (client.Service == nil) {
					c.object(d.Object, Error, conversionPath, "conversion webhook: exactly one of clientConfig.url and clientConfig.service is required")
					continue
				}
				if client.URL != nil {
					for _, problem := range urlProblems(*client.URL) {
						c.fixing(problem.fix).object(d.Object, Error, conversionPath+"/clientConfig/url", "conversion webhook: %s", problem.text)
					}
					continue
				}
				s := client.Service
				c.reach(d.title(), s.Namespace, s.Name, s.Port, func(format string, args ...any) {
					c.object(d.Object, Error, conversionPath+"/clientConfig/service", "conversion webhook: "+format, args...)
				})
			}
		},
	}
}

func checkStrategy(c *checker, d *typed[apiextensionsv1.CustomResourceDefinition]) {
	conversion := d.value.Spec.Conversion
	if conversion == nil {
		return
	}
	const fix = "Set strategy: Webhook and spec.conversion.webhook, or strategy: None alone."
	switch conversion.Strategy {
	case apiextensionsv1.WebhookConverter:
		if conversion.Webhook == nil {
			c.fixing(fix).object(d.Object, Error, "/spec/conversion", "conversion strategy Webhook requires a webhook")
		}
	case apiextensionsv1.NoneConverter:
		if conversion.Webhook != nil {
			c.fixing(fix).object(d.Object, Error, conversionPath, "conversion strategy None forbids a webhook")
		}
	default:
		c.fixing(fix).object(d.Object, Error, "/spec/conversion/strategy", "conversion strategy %q is neither None nor Webhook", conversion.Strategy)
	}
}
