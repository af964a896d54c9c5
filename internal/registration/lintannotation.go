// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"net"
	"net/url"
	"strings"

	"github.com/sallyport-io/sallyport/admission"
)

// LintAnnotation is the annotation that lists findings of sallyport lint to ignore, with
// the reasons for these decisions.
const LintAnnotation = "lint.sallyport.io/ignore"

// wedgeRules are the rules of the linter that a definition's AllowWedge covers.
const wedgeRules = "wedge-wildcard,wedge-self,wedge-system,wedge-node,lease,crd-admission,loop"

// lintAnnotation is the annotation of the object with the webhooks of a type, or nil if
// there is nothing to ignore.
func (c Config) lintAnnotation(webhooks []admission.Webhook, of admission.Type) map[string]string {
	var lines []string
	if c.Endpoint.loopback() {
		lines = append(lines, "client-config: the URL was chosen to be a loopback address; a server runs beside every API server")
	}
	for _, w := range webhooks {
		if w.Type != of || w.AllowWedge == "" {
			continue
		}
		lines = append(lines, wedgeRules+" "+w.Name+": "+strings.Join(strings.Fields(w.AllowWedge), " "))
	}
	if len(lines) == 0 {
		return nil
	}
	if own := c.Annotations[LintAnnotation]; own != "" {
		lines = append([]string{own}, lines...)
	}
	return map[string]string{LintAnnotation: strings.Join(lines, "\n")}
}

// loopback reports whether every API server needs a webhook server on its host.
func (e Endpoint) loopback() bool {
	u, err := url.Parse(e.URL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
