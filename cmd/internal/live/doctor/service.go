// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
)

// checkService checks the Service and its endpoints.
func (d *doctor) checkService(ctx context.Context) {
	const check = "service"
	s := d.service()
	if s == nil {
		if d.url() != nil {
			d.OK(check, "the server is reached by a URL, %s; none is needed", d.url().Host)
		} else {
			d.Skip(check, "the Service is unknown: pass --service")
		}
		return
	}
	title := s.Namespace + "/" + s.Name
	live, err := d.Client.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		d.Fix(check, "create it, or correct --service of the server", "there is no Service %s", title)
		return
	case err != nil:
		d.Unread(check, "get services in "+s.Namespace, err)
		return
	}
	port := int32(443)
	if s.Port != nil {
		port = *s.Port
	}
	has := false
	for _, p := range live.Spec.Ports {
		has = has || p.Port == port
	}
	if !has {
		d.Fix(check, "add the port, or correct --service of the server", "Service %s has no port %d", title, port)
		return
	}
	ready, other, err := d.Endpoints(ctx, s.Namespace, s.Name)
	switch {
	case err != nil:
		d.Unread(check, "list endpointslices in "+s.Namespace, err)
	case len(ready) == 0:
		d.Fix(check, "see why its pods are not ready: kubectl --namespace "+s.Namespace+" get pods; and whether the Service selects them",
			"no endpoint of Service %s is ready, of %d", title, len(other))
	case len(ready) == 1:
		d.Fix(check, "run two replicas or more, on different nodes", "one endpoint of Service %s is ready: a restart of it is an outage", title)
	default:
		d.OK(check, "%d of %d endpoints of %s are ready", len(ready), len(ready)+len(other), title)
	}
}

// checkReachability checks the server's readiness, through the API server's proxy if the server
// is behind a Service.
func (d *doctor) checkReachability(ctx context.Context) {
	const check = "reachability"
	if s := d.service(); s != nil {
		port := "443"
		if s.Port != nil {
			port = fmt.Sprint(*s.Port)
		}
		body, err := d.Client.CoreV1().Services(s.Namespace).ProxyGet("https", s.Name, port, "/readyz", map[string]string{"verbose": ""}).DoRaw(ctx)
		switch {
		case err == nil:
			d.OK(check, "the API server reaches it through Service %s/%s, and it is ready", s.Namespace, s.Name)
		case apierrors.IsForbidden(err):
			d.Skip(check, "no permission to get services/proxy in %s", s.Namespace)
		case bytes.Contains(body, []byte("[-]")):
			d.Fix(check, "it becomes ready when that is settled; see its log", "it is not ready: %s", failedChecks(body))
		default:
			d.Fix(check, "look for a NetworkPolicy, a firewall between control plane and nodes, and a Service that selects other pods",
				"the API server does not reach it through Service %s/%s: %v", s.Namespace, s.Name, err)
		}
		return
	}
	u := d.url()
	if u == nil {
		d.Skip(check, "the address of the server is unknown")
		return
	}
	// checkCertificate verifies its certificate.
	client := &http.Client{Timeout: inspect.DialTimeout, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // see above
	}}
	status, body, err := get(ctx, client, "https://"+u.Host+"/readyz?verbose")
	switch {
	case err != nil && loopbackHost(u.Hostname()):
		d.Fix(check, "run doctor on the host of the API server; if it is this one, start the server", "no server answers at %s", u.Host)
	case err != nil:
		d.Fix(check, "start the server, or open the way to it", "no server answers at %s", u.Host)
	case status != http.StatusOK:
		d.Fix(check, "it becomes ready when that is settled; see its log", "it is not ready: %s", failedChecks(body))
	default:
		d.OK(check, "it answers at %s from here, and is ready", u.Host)
	}
}

func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// failedChecks returns the lines of /readyz with failed checks.
func failedChecks(body []byte) string {
	var out []string
	for line := range strings.Lines(string(body)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "[-] "); ok {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return "it does not report why"
	}
	return strings.Join(out, "; ")
}

func get(ctx context.Context, client *http.Client, url string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	const limit = 16 << 20
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	return resp.StatusCode, body, err
}
