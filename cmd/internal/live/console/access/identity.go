// SPDX-License-Identifier: Apache-2.0

// Package access decides who may open the console, with whose rights it reads, and how much it does at the same time.
package access

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/serving"
)

// An Identifier returns the user of a request and the configuration to read with that user's rights.
// An error refuses the request.
type Identifier func(r *http.Request, base *rest.Config) (user string, config *rest.Config, err error)

// Local identifies everyone who reaches a loopback address as the local user, as kubectl proxy does. It
// refuses other host names: a site whose name resolves to a loopback address (DNS rebinding) could read
// the pages.
func Local(r *http.Request, base *rest.Config) (string, *rest.Config, error) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", nil, fmt.Errorf("the host %q is not a loopback address: open http://127.0.0.1 with the port of the console", host)
	}
	return "", base, nil
}

// A Proxy authenticates users in front of the console, and names them in a header.
type Proxy struct {
	// UserHeader has the name of the user, such as kubeflow-userid. Required.
	UserHeader string
	// GroupsHeader has the groups of the user, separated by commas. It may be empty.
	GroupsHeader string
	// Networks are the addresses of proxies, and ClientCA verifies their client certificates. At least
	// one is required. If both are set, a proxy must meet both.
	Networks []netip.Prefix
	ClientCA *serving.ClientCA
}

// Validate reports every problem.
func (p *Proxy) Validate() error {
	var errs []error
	for _, header := range []string{p.UserHeader, p.GroupsHeader} {
		if strings.ContainsFunc(header, func(r rune) bool {
			return r != '-' && r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
		}) {
			errs = append(errs, fmt.Errorf("the header %q: write a name such as X-Forwarded-User", header))
		}
	}
	if p.UserHeader == "" {
		errs = append(errs, errors.New("the header with the user is required"))
	}
	if len(p.Networks) == 0 && p.ClientCA == nil {
		errs = append(errs, errors.New("who may send the header is required: networks of proxies, or the CA of their client certificates"))
	}
	return errors.Join(errs...)
}

var errNotTrusted = errors.New("this is not a trusted proxy: open the console through the address of your platform")

// Identify returns the user that a trusted proxy names. Groups that Kubernetes itself gives, and users
// that are its components, are refused: they come from a proxy only if somebody forged them.
func (p *Proxy) Identify(r *http.Request, base *rest.Config) (string, *rest.Config, error) {
	if len(p.Networks) > 0 {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !slices.ContainsFunc(p.Networks, func(n netip.Prefix) bool { return n.Contains(from.Addr().Unmap()) }) {
			return "", nil, errNotTrusted
		}
	}
	if p.ClientCA != nil {
		if err := p.ClientCA.Authenticate(r); err != nil {
			return "", nil, errNotTrusted
		}
	}
	users := r.Header.Values(p.UserHeader)
	if len(users) != 1 {
		return "", nil, fmt.Errorf("the request has %d headers %s: the proxy must set exactly one", len(users), p.UserHeader)
	}
	as := rest.ImpersonationConfig{UserName: strings.TrimSpace(users[0])}
	if p.GroupsHeader != "" {
		for _, value := range r.Header.Values(p.GroupsHeader) {
			for group := range strings.SplitSeq(value, ",") {
				if group = strings.TrimSpace(group); group != "" {
					as.Groups = append(as.Groups, group)
				}
			}
		}
	}
	for _, name := range append([]string{as.UserName}, as.Groups...) {
		const maxLength = 1024
		if name == "" || len(name) > maxLength || !utf8.ValidString(name) || manifest.Printable(name) != name || strings.Contains(name, "\n") {
			return "", nil, fmt.Errorf("the proxy sent no valid name of a user or a group: %q", name[:min(len(name), 100)])
		}
		if strings.HasPrefix(name, "system:") {
			return "", nil, fmt.Errorf("the name %q is reserved for Kubernetes: the console reads for people only", name)
		}
	}
	config := rest.CopyConfig(base)
	config.Impersonate = as
	return as.UserName, config, nil
}
