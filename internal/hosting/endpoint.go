// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// ParseService reads "namespace/name" or "namespace/name:port". A missing namespace is for
// [Settings.Validate] to report.
func ParseService(value string) (*registration.Service, error) {
	namespace, rest, ok := strings.Cut(value, "/")
	if !ok {
		namespace, rest = "", value
	}
	name, port, hasPort := strings.Cut(rest, ":")
	service := &registration.Service{Namespace: namespace, Name: name}
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return nil, errors.New("the port must be a number from 1 to 65535")
		}
		service.Port = int32(n)
	}
	return service, nil
}

// FormatService writes what ParseService reads; nothing for nil.
func FormatService(s *registration.Service) string {
	switch {
	case s == nil:
		return ""
	case s.Port == 0:
		return s.Namespace + "/" + s.Name
	}
	return s.Namespace + "/" + s.Name + ":" + strconv.Itoa(int(s.Port))
}

// serviceValue returns the value of a flag for a Service.
func serviceValue(pointer any) setting.Value { return serviceFlag{pointer.(**registration.Service)} }

type serviceFlag struct{ field **registration.Service }

// Set implements [setting.Value].
func (s serviceFlag) Set(text string) (err error) {
	*s.field = nil
	if text != "" {
		*s.field, err = ParseService(text)
	}
	return err
}

// String implements [setting.Value].
func (s serviceFlag) String() string {
	if s.field == nil {
		return ""
	}
	return FormatService(*s.field)
}

// Type implements [setting.Value].
func (s serviceFlag) Type() string { return "string" }

// Hosts returns the names and addresses that the API server expects in the serving certificate.
func Hosts(endpoint registration.Endpoint) (names []string, addresses []net.IP) {
	if s := endpoint.Service; s != nil {
		return []string{s.Name + "." + s.Namespace + ".svc"}, nil
	}
	u, err := url.Parse(endpoint.URL)
	if err != nil { // the endpoint is validated
		return nil, nil
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		return nil, []net.IP{ip}
	}
	return []string{u.Hostname()}, nil
}
