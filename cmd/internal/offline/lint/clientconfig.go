// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func clientConfig() Rule {
	return Rule{
		ID: "client-config", Group: groupReach, Severities: []Severity{Error, Warning}, Source: fromAPI,
		What: "Exactly one of url and service is set. A URL is https, has a host, and has no user information, query or fragment. A service has a namespace and a name, a port from 1 to 65535, and a path of parts that are DNS subdomains.",
		Why:  "The API server refuses anything else. A loopback URL requires a server beside each API server; where there is none, every call fails.",
		Fix:  "Use clientConfig.service for a server in the cluster, and a static manifest for one beside each API server.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if (w.ClientConfig.URL == nil) == (w.ClientConfig.Service == nil) {
					c.webhook(w, Error, "clientConfig", "exactly one of clientConfig.url and clientConfig.service is required")
					continue
				}
				if w.ClientConfig.URL == nil {
					for _, problem := range serviceProblems(w.ClientConfig.Service) {
						c.fixing(problem.fix).webhook(w, Error, "clientConfig/service", "%s", problem.text)
					}
					continue
				}
				for _, problem := range urlProblems(*w.ClientConfig.URL) {
					c.fixing(problem.fix).webhook(w, Error, "clientConfig/url", "%s", problem.text)
				}
				if loopback(*w.ClientConfig.URL) && !w.config.static() {
					c.webhook(w, Warning, "clientConfig/url", "url is a loopback address; every kube-apiserver needs its own server")
				}
			}
		},
	}
}

// A clientProblem is a problem with its fix.
type clientProblem struct{ text, fix string }

// urlProblems returns the problems that the API server finds in a URL. They do not
// repeat the URL, which may contain a password.
func urlProblems(text string) []clientProblem {
	u, err := url.Parse(text)
	if err != nil {
		return []clientProblem{{"url does not parse", "Write a URL such as https://webhooks.example.com/check."}}
	}
	var out []clientProblem
	if u.Scheme != "https" {
		out = append(out, clientProblem{"url must use https", "Begin the URL with https://: the API server calls webhooks over TLS only."})
	}
	if u.Hostname() == "" {
		out = append(out, clientProblem{"url must have a host", "Put the server's host name behind https://."})
	}
	for _, part := range []struct {
		there bool
		clientProblem
	}{
		{u.User != nil, clientProblem{"url must not contain user information", "Remove it; the API server shows who it is by a client certificate or a token of its own configuration."}},
		{u.RawQuery != "" || u.ForceQuery, clientProblem{"url must not contain a query", "Put parameters into the path."}},
		{u.Fragment != "" || strings.HasSuffix(text, "#"), clientProblem{"url must not contain a fragment", "Remove the fragment."}},
	} {
		if part.there {
			out = append(out, part.clientProblem)
		}
	}
	return out
}

// serviceProblems returns the problems that the API server finds in a Service
// reference, whether or not the Service exists.
func serviceProblems(s *admissionregistrationv1.ServiceReference) []clientProblem {
	var out []clientProblem
	if s.Namespace == "" || s.Name == "" {
		out = append(out, clientProblem{"service needs a namespace and a name", "Set clientConfig.service.namespace and name."})
	}
	if s.Port != nil && (*s.Port < 1 || *s.Port > 65535) {
		out = append(out, clientProblem{fmt.Sprintf("service port %d is outside 1-65535", *s.Port), "Set the port of the Service, or leave it out for 443."})
	}
	if s.Path != nil && *s.Path != "" && *s.Path != "/" {
		if !strings.HasPrefix(*s.Path, "/") {
			out = append(out, clientProblem{fmt.Sprintf("service path %q does not begin with a slash", *s.Path), "Begin the path with a slash."})
		}
		for part := range strings.SplitSeq(strings.Trim(*s.Path, "/"), "/") {
			if len(validation.IsDNS1123Subdomain(part)) > 0 {
				out = append(out, clientProblem{fmt.Sprintf("service path %q has the part %q, which is not a DNS subdomain", *s.Path, part),
					"Use lower-case letters, digits, dashes and dots in each part of the path, and no query."})
			}
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
