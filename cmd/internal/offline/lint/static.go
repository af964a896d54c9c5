// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/sallyport-io/sallyport/cmd/internal/offline/lint/staticmanifests"

func static() Rule {
	return Rule{
		ID: "static", Group: groupStatic, Severities: []Severity{Error}, Source: "KEP-5793; " + fromAPI,
		What: "A static admission manifest has a name that ends in .static.k8s.io and is unique in its directory. A webhook has url, never service; a policy no paramKind; a binding no paramRef, and names a policy of the directory. A directory has the kinds of one plugin. No other object has such a name.",
		Why:  "kube-apiserver rejects the file, and the last valid set of files stays active.",
		Fix:  "Rename the object, or move it to the right place for its name; write values of a parameter into the policy.",
		check: func(c *checker) {
			var all []staticmanifests.Object
			for _, objects := range c.byKind {
				for _, o := range objects {
					file, line := o.at("")
					all = append(all, staticmanifests.Object{Kind: o.Kind, Name: o.Name, Raw: o.Raw, File: file, Line: line, Static: o.static(), InDirectory: o.Static, Ref: o})
				}
			}
			for _, p := range staticmanifests.Check(all, c.options.Release) {
				c.object(p.Ref.(*Object), Error, p.Pointer, "%s", p.Message)
			}
			for _, w := range c.webhooks {
				if w.config.static() && w.ClientConfig.Service != nil {
					c.fixing("Use clientConfig.url with 127.0.0.1, for a server on the host: Services may not be there yet.").webhook(w, Error, "clientConfig", "static configuration %s must use clientConfig.url", w.config.Name)
				}
			}
		},
	}
}
