// SPDX-License-Identifier: Apache-2.0

package lint

import "slices"

func crdOwnCache() Rule {
	return Rule{
		ID: "crd-own-cache", Group: groupCRD, Severities: []Severity{Warning}, Source: "incidents",
		What: "A server that converts objects of a kind does not wait for a cache of that kind before it serves.",
		Why:  "The cache cannot be filled before the conversion webhook answers: neither gets ready.",
		Fix:  "Start the server before the caches, and let the Service of the conversion webhook publish addresses that are not ready.",
		check: func(c *checker) {
			for _, d := range c.converting() {
				client := conversionClient(d)
				if client == nil || client.Service == nil {
					continue
				}
				known, ok := c.server(client.Service.Namespace, client.Service.Name)
				if !ok {
					c.skip(d.title(), "only its code tells what the server caches")
				} else if slices.Contains(known.Caches, d.Name) {
					c.object(d.Object, Warning, conversionPath, "%s/%s caches %s and serves its conversion; start the server before the caches",
						client.Service.Namespace, client.Service.Name, d.value.Spec.Names.Kind)
				}
			}
		},
	}
}
