// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/certificates"
)

func caBundle() Rule {
	return Rule{
		ID: "ca-bundle", Group: groupReach, Severities: []Severity{Error, Warning, Info}, Source: "practice; Go's TLS client",
		What: "The caBundle is set or injected, parses, is valid for 30 more days, and signs the serving certificate, whose name is <service>.<namespace>.svc.",
		Why:  "Otherwise TLS fails, and every call with it. During a rotation, more than one CA is correct.",
		Fix:  "Write the CA of the serving certificate into caBundle, or let cert-manager or the server itself do it; renew certificates that expire soon. A GitOps tool must ignore a caBundle that another component writes: see docs/gitops.md.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				config := w.ClientConfig
				if certificates.Blank(config.CABundle) {
					// For a URL, the API server may trust its system's CAs.
					if config.Service != nil && !injected(w.config.Object) {
						severity, text := c.emptyBundle(w.config.Object, registrationGroup, strings.ToLower(w.config.Kind)+"s")
						c.webhook(w, severity, "clientConfig", "caBundle is empty and no injector annotation is present%s", text)
					}
					continue
				}
				if problems := certificates.OfBundle(config.CABundle, c.options.Now); len(problems) > 0 {
					for _, p := range problems {
						c.webhook(w, severityOf(p), "clientConfig/caBundle", "caBundle %s", p.Text)
					}
					if !problems[0].Soon {
						continue
					}
				}
				key, name := endpoint(config)
				chain := c.leaf(key, config.Service)
				if chain == nil {
					c.skip(w.title(), "the serving certificate was not seen")
					continue
				}
				for _, p := range certificates.OfLeaf(chain, config.CABundle, name, c.options.Now) {
					text := p.Text
					if strings.HasPrefix(text, "does not") {
						text = "caBundle " + text
					}
					c.webhook(w, severityOf(p), "clientConfig/caBundle", "%s", text)
				}
			}
		},
	}
}

// emptyBundle returns the severity of an empty caBundle. In files, it is right if an operator writes it at run time: the sign is
// a role that may.
func (c *checker) emptyBundle(o *Object, group, resource string) (Severity, string) {
	for _, r := range c.roles {
		if c.cluster || systemRole(r.Name) {
			continue
		}
		for _, rule := range r.rules {
			if names := rule.ResourceNames; len(names) > 0 && !slices.Contains(names, o.Name) {
				continue
			}
			rule.ResourceNames = nil
			if len(verbsOn(rule, group, resource, "update", "patch")) > 0 {
				return Info, fmt.Sprintf("; whether the server writes it when it starts cannot be seen: %s %s lets it", r.Kind, r.Name)
			}
		}
	}
	return Error, ""
}

// leaf returns the server's certificate chain, as served or from the Secret that its
// pods mount, or nil if neither was read.
func (c *checker) leaf(key string, service *admissionregistrationv1.ServiceReference) []*x509.Certificate {
	if chain, ok := c.options.Leaves[key]; ok {
		return chain
	}
	if service == nil {
		return nil
	}
	s := c.serviceOf(service.Namespace, service.Name)
	if s == nil {
		return nil
	}
	for _, w := range c.behind(s) {
		for _, volume := range w.template.Spec.Volumes {
			if volume.Secret == nil {
				continue
			}
			for _, secret := range c.secrets {
				if secret.Namespace == w.Namespace && secret.Name == volume.Secret.SecretName {
					if chain := certificates.Serving(secret.value.Data); chain != nil {
						return chain
					}
				}
			}
		}
	}
	return nil
}

// endpoint returns the key of a server, "host:port", and the name that the API server
// requires in its certificate.
func endpoint(config admissionregistrationv1.WebhookClientConfig) (key, name string) {
	if s := config.Service; s != nil {
		port := int32(443)
		if s.Port != nil {
			port = *s.Port
		}
		name = s.Name + "." + s.Namespace + ".svc"
		return fmt.Sprintf("%s:%d", name, port), name
	}
	if config.URL == nil {
		return "", ""
	}
	u, err := url.Parse(*config.URL)
	if err != nil {
		return "", ""
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return u.Hostname() + ":" + port, u.Hostname()
}

// Endpoints returns the servers of all webhooks and conversions as "host:port", where
// the host of a Service is <name>.<namespace>.svc. They are keys of [Options.Leaves].
func (in *Inventory) Endpoints() []string {
	var out []string
	seen := map[string]bool{}
	add := func(config admissionregistrationv1.WebhookClientConfig) {
		if key, _ := endpoint(config); key != "" && !seen[key] {
			seen[key] = true
			out = append(out, key)
		}
	}
	for _, w := range in.webhooks {
		add(w.ClientConfig)
	}
	for _, d := range in.definitions {
		if client := conversionClient(d); client != nil {
			add(*client)
		}
	}
	return out
}

// injectors are annotations of controllers that write the CA bundle.
var injectors = []string{
	"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle",
}

// injected reports whether a controller writes the CA bundle of an object: a Sallyport
// server in its own objects, or an injector requested by annotation.
func injected(o *Object) bool {
	return o.Labels["app.kubernetes.io/managed-by"] == "sallyport" ||
		slices.ContainsFunc(injectors, func(key string) bool { return o.Annotations[key] != "" })
}

func severityOf(p certificates.Problem) Severity {
	if p.Soon {
		return Warning
	}
	return Error
}
