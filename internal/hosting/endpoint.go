// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/sallyport-io/sallyport/registration"
)

// ParseService reads "namespace/name" or "namespace/name:port".
func ParseService(value string) (*registration.Service, error) {
	namespace, rest, ok := strings.Cut(value, "/")
	name, port, hasPort := strings.Cut(rest, ":")
	if !ok || namespace == "" || name == "" {
		return nil, errors.New("write NAMESPACE/NAME or NAMESPACE/NAME:PORT")
	}
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
