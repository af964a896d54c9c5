// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net"
	"net/http"

	"k8s.io/client-go/rest"
)

// An identifier returns the user of a request and the configuration to read with that user's rights.
// An error refuses the request.
type identifier func(r *http.Request, base *rest.Config) (user string, config *rest.Config, err error)

// local identifies everyone who reaches a loopback address as the local user, as kubectl proxy does. It
// refuses other host names: a site whose name resolves to a loopback address (DNS rebinding) could read
// the pages.
func local(r *http.Request, base *rest.Config) (string, *rest.Config, error) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", nil, fmt.Errorf("the host %q is not a loopback address: open http://127.0.0.1 with the port of the console", host)
	}
	return "", base, nil
}
