// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

// Endpoint is the address at which the API server calls the webhook server. Exactly one of
// Service and URL is set.
type Endpoint struct {
	// Service is for a server inside the cluster.
	Service *Service
	// URL is for a server outside the cluster: the base URL without the path of a webhook,
	// for example "https://127.0.0.1:9443". The scheme must be https, without user
	// information, query or fragment (API validation of clientConfig.url). A loopback
	// address means a server on each host of kube-apiserver.
	URL string
}

// Validate reports all problems.
func (e Endpoint) Validate() error {
	switch {
	case e.Service != nil && e.URL != "":
		return errors.New("endpoint: both a service and a URL are set; choose one")
	case e.Service != nil:
		return validateService(e.Service)
	case e.URL != "":
		return validateURL(e.URL)
	default:
		return errors.New("endpoint: a service or a URL is required")
	}
}

func validateService(s *Service) error {
	var errs []error
	if problems := validation.IsDNS1123Label(s.Namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("endpoint: service namespace %q: %s", s.Namespace, strings.Join(problems, "; ")))
	}
	if problems := validation.IsDNS1123Label(s.Name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("endpoint: service name %q: %s", s.Name, strings.Join(problems, "; ")))
	}
	if s.Port < 0 || s.Port > 65535 {
		errs = append(errs, fmt.Errorf("endpoint: service port %d is outside 1 to 65535", s.Port))
	}
	return errors.Join(errs...)
}

func portOf(s *Service) int32 {
	if s.Port == 0 {
		return 443
	}
	return s.Port
}

// at returns the URL of a webhook.
func (e Endpoint) at(path string) string { return strings.TrimRight(e.URL, "/") + path }

func validateURL(base string) error {
	u, err := url.Parse(base)
	if err != nil {
		var parse *url.Error // its message contains the URL, which may have a password
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return fmt.Errorf("endpoint: the URL does not parse: %w", err)
	}
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("endpoint: URL %s: %s", u.Redacted(), fmt.Sprintf(format, args...)))
	}
	if u.Scheme != "https" {
		add("the scheme is %q, must be https", u.Scheme)
	}
	if u.Hostname() == "" {
		add("the host is missing, for example https://127.0.0.1:9443")
	}
	if u.User != nil {
		add("user information is not allowed")
	}
	if u.RawQuery != "" || u.ForceQuery {
		add("a query is not allowed")
	}
	if u.Fragment != "" || strings.HasSuffix(base, "#") {
		add("a fragment is not allowed")
	}
	return errors.Join(errs...)
}

// clientConfig is the client config of the webhook at path. Without a caBundle the field is
// left to other managers; if it stays empty, the API server trusts the system roots.
func (e Endpoint) clientConfig(path string, caBundle []byte) *admissionregistrationac.WebhookClientConfigApplyConfiguration {
	config := admissionregistrationac.WebhookClientConfig()
	if e.Service != nil {
		config.WithService(admissionregistrationac.ServiceReference().
			WithNamespace(e.Service.Namespace).WithName(e.Service.Name).WithPort(portOf(e.Service)).WithPath(path))
	} else {
		config.WithURL(e.at(path))
	}
	if len(caBundle) > 0 {
		config.WithCABundle(caBundle...)
	}
	return config
}
