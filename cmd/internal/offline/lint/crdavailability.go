// SPDX-License-Identifier: Apache-2.0

package lint

func crdAvailability() Rule {
	return Rule{
		ID: "crd-availability", Group: groupCRD, Severities: []Severity{Warning}, Source: "practice",
		What: "The server of a conversion webhook has two replicas or more, on different nodes.",
		Why:  "Conversion has no failurePolicy: an outage breaks reads, garbage collection, the deletion of namespaces and server-side apply.",
		Fix:  "Run two replicas on different nodes.",
		check: func(c *checker) {
			for _, d := range c.converting() {
				if client := conversionClient(d); client == nil {
					continue
				} else if client.Service == nil {
					c.skip(d.title(), "the server is reached by a URL: its workload is not known")
				} else {
					c.seen(d.title(), client.Service.Namespace, client.Service.Name)
				}
			}
			for _, b := range c.backends() {
				for _, crd := range b.converts {
					w := b.workload
					n, by, pointer := w.fewest()
					switch {
					case !w.every && n < 2:
						c.object(by, Warning, pointer, "conversion webhook of %s has %d replica; an outage breaks reads of all versions", crd, n)
					case !w.every && !w.spread():
						c.object(w.Object, Warning, w.path, "conversion webhook of %s may have all replicas on one node; an outage breaks reads of all versions", crd)
					}
				}
			}
		},
	}
}

// spread reports whether anything keeps replicas apart.
func (w *workload) spread() bool {
	spec := w.template.Spec
	return len(spec.TopologySpreadConstraints) > 0 || spec.Affinity != nil && spec.Affinity.PodAntiAffinity != nil
}
