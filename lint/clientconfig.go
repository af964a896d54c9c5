// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"net"
	"net/url"
	"strings"
)

func clientConfig() Rule {
	return Rule{
		ID: "client-config", Group: groupReach, Severities: []Severity{Error, Warning}, Source: fromAPI,
		What: "Exactly one of url and service is set. A URL is https, has a host, and has no user information, query or fragment.",
		Why:  "The API server refuses anything else. A loopback URL means one server beside each API server; where there is none, every call fails.",
		Fix:  "Use clientConfig.service for a server in the cluster, and a static manifest for one beside each API server.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if (w.ClientConfig.URL == nil) == (w.ClientConfig.Service == nil) {
					c.webhook(w, Error, "clientConfig", "exactly one of clientConfig.url and clientConfig.service is required")
					continue
				}
				if w.ClientConfig.URL == nil {
					continue
				}
				for _, problem := range urlProblems(*w.ClientConfig.URL) {
					c.webhook(w, Error, "clientConfig/url", "%s", problem)
				}
				if loopback(*w.ClientConfig.URL) && !w.config.static() {
					c.webhook(w, Warning, "clientConfig/url", "url is a loopback address; every kube-apiserver needs its own server")
				}
			}
		},
	}
}

// urlProblems are the mistakes that the API server finds in a URL. It is not repeated:
// it may have a password in it.
func urlProblems(text string) []string {
	u, err := url.Parse(text)
	if err != nil {
		return []string{"url does not parse"}
	}
	var out []string
	if u.Scheme != "https" {
		out = append(out, "url must use https")
	}
	if u.Hostname() == "" {
		out = append(out, "url must have a host")
	}
	for _, part := range []struct {
		there bool
		name  string
	}{{u.User != nil, "user information"}, {u.RawQuery != "" || u.ForceQuery, "a query"}, {u.Fragment != "" || strings.HasSuffix(text, "#"), "a fragment"}} {
		if part.there {
			out = append(out, "url must not contain "+part.name)
		}
	}
	return out
}

func loopback(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
