// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/sallyport-io/sallyport/cmd/internal/offline/lint/certificates"

func crdCABundle() Rule {
	return Rule{
		ID: "crd-ca-bundle", Group: groupCRD, Severities: []Severity{Error, Warning, Info}, Source: "practice; Go's TLS client",
		What: "The caBundle of the conversion webhook is set or injected, is not only white space, parses, and signs the serving certificate.",
		Why:  "Otherwise TLS fails, and with it every read in another version than the stored one. White space counts as empty.",
		Fix:  "Write the CA of the serving certificate into caBundle, or let cert-manager or the server itself do it.",
		check: func(c *checker) {
			for _, d := range c.converting() {
				client := conversionClient(d)
				if client == nil {
					continue // reported by crd-client-config
				}
				if certificates.Blank(client.CABundle) {
					if client.Service != nil && !injected(d.Object) {
						severity, text := c.emptyBundle(d.Object, "apiextensions.k8s.io", "customresourcedefinitions")
						c.object(d.Object, severity, conversionPath+"/clientConfig", "conversion caBundle is empty and no injector annotation is present%s", text)
					}
					continue
				}
				problems := certificates.OfBundle(client.CABundle, c.options.Now)
				if len(problems) == 0 || problems[0].Soon {
					key, name := endpoint(*client)
					if chain := c.leaf(key, client.Service); chain != nil {
						problems = append(problems, certificates.OfLeaf(chain, client.CABundle, name, c.options.Now)...)
					} else {
						c.skip(d.title(), "the serving certificate was not seen")
					}
				}
				for _, p := range problems {
					c.object(d.Object, severityOf(p), conversionPath+"/clientConfig/caBundle", "conversion caBundle: %s", p.Text)
				}
			}
		},
	}
}
