// SPDX-License-Identifier: Apache-2.0

package lint

import "strings"

func static() Rule {
	return Rule{
		ID: "static", Group: groupStatic, Severities: []Severity{Error}, Source: "KEP-5793; " + fromAPI,
		What: "A static admission manifest has a name that ends in .static.k8s.io and is unique in its directory, and url, never service. No other object has such a name.",
		Why:  "kube-apiserver rejects the file, and the last valid set of files stays active.",
		Fix:  "Rename the object, or move it to the right place for its name.",
		check: func(c *checker) {
			names := map[string]*configuration{}
			for _, config := range c.configurations {
				suffixed := strings.HasSuffix(config.Name, staticSuffix)
				if !config.static() {
					if suffixed {
						c.object(config.Object, Error, "/metadata/name", "%s is registered through the API; names that end in %s are for static manifests", config.Name, staticSuffix)
					}
					continue
				}
				if !suffixed {
					c.object(config.Object, Error, "/metadata/name", "static configuration %s must end with %s", config.Name, staticSuffix)
				}
				if other, ok := names[config.Kind+"/"+config.Name]; ok {
					file, _ := other.at("")
					c.object(config.Object, Error, "/metadata/name", "name %s is already used in %s", config.Name, file)
				}
				names[config.Kind+"/"+config.Name] = config
				for _, w := range config.webhooks {
					if w.ClientConfig.Service != nil {
						c.fixing("Use clientConfig.url with 127.0.0.1, for a server on the host: Services may not be there yet.").webhook(w, Error, "clientConfig", "static configuration %s must use clientConfig.url", config.Name)
					}
				}
			}
		},
	}
}
