// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
	"github.com/sallyport-io/sallyport/cmd/internal/live/portforward"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
)

// replica holds what a replica reports about itself.
type replica struct {
	name    string
	metrics map[string]float64 // by name, with the value of the label phase if there is one
}

// checkReplicas compares the replicas' metrics.
func (d *doctor) checkReplicas(ctx context.Context) {
	const check = "replicas"
	replicas, ok := d.askReplicas(ctx)
	if !ok {
		return
	}
	before := len(d.Checks)
	for _, problem := range []struct{ metric, text, remedy string }{
		{"sallyport_certificate_problem", "has a problem with its certificate", "see its log"},
		{"sallyport_certificate_rotation_problem", "cannot continue the rotation of the authority", "see its log, and sallyport certificates status"},
		{"sallyport_certificate_held", "keeps an old certificate, as a published caBundle would refuse a new one", "see who writes the caBundle"},
	} {
		for _, r := range replicas {
			if r.metrics[problem.metric] > 0 {
				d.Fix(check, problem.remedy, "%s %s", r.name, problem.text)
			}
		}
	}
	for _, r := range replicas {
		if registered, ok := r.metrics["sallyport_registration_registered"]; ok && registered == 0 {
			d.Fix(check, "see its log, and the events RegistrationConflict: another server of this name or another client writes them too, or it lacks the rights",
				"%s wants the webhook configurations to be different", r.name)
		}
		if good, ok := r.metrics["sallyport_config_last_reload_successful"]; ok && good == 0 {
			d.Fix(check, "correct the file: sallyport config check names the problems", "%s continues with an earlier configuration: its file is invalid", r.name)
		}
	}
	for _, agreed := range []struct{ metric, what, remedy string }{
		{"sallyport_certificate_authority_not_after_timestamp_seconds", "which authority signs", "replicas follow within certificate.caPropagation; if they do not, see whether each may read the Secret"},
		{"sallyport_poddefaults", "how many PodDefaults there are", "one of them has lost its watch if this stays so: see its log"},
		{"sallyport_projects", "how many namespaces count", "one of them has lost its watch if this stays so: see its log"},
	} {
		for _, r := range replicas[min(1, len(replicas)):] {
			if r.metrics[agreed.metric] != replicas[0].metrics[agreed.metric] {
				d.Fix(check, agreed.remedy, "%s and %s do not agree on %s", replicas[0].name, r.name, agreed.what)
			}
		}
	}
	if len(d.Checks) == before {
		names := make([]string, len(replicas))
		for i, r := range replicas {
			names[i] = r.name
		}
		d.OK(check, "%s agree, and report no problem", strings.Join(names, ", "))
	}
}

// askReplicas reads the metrics of all replicas. If ok is false, it has recorded why.
func (d *doctor) askReplicas(ctx context.Context) ([]replica, bool) {
	const check = "replicas"
	var out []replica
	if len(d.Replicas) > 0 {
		client := &http.Client{Timeout: inspect.DialTimeout}
		for _, base := range d.Replicas {
			status, body, err := get(ctx, client, strings.TrimRight(base, "/")+"/metrics")
			if needsToken(status, body) {
				d.tokenNeeded(check, base)
				return nil, false
			}
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("it answers with status %d", status)
			}
			if !d.readReplica(check, base, body, err, &out) {
				return nil, false
			}
		}
		return out, true
	}
	s := d.service()
	if s == nil {
		d.Skip(check, "a server that is reached by a URL is asked only by '%s doctor --replica URL'", d.Program)
		return nil, false
	}
	ready, _, err := d.Endpoints(ctx, s.Namespace, s.Name)
	if err != nil {
		d.Unread(check, "list endpointslices in "+s.Namespace, err)
		return nil, false
	}
	for _, e := range ready {
		if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
			continue
		}
		body, err := d.metricsOf(ctx, s.Namespace, e.TargetRef.Name)
		if apierrors.IsForbidden(err) {
			d.Skip(check, "no permission to get pods/proxy in %s", s.Namespace)
			return nil, false
		}
		if err != nil && needsToken(0, body) {
			d.tokenNeeded(check, e.TargetRef.Name)
			return nil, false
		}
		if !d.readReplica(check, e.TargetRef.Name, body, err, &out) {
			return nil, false
		}
	}
	if len(out) == 0 {
		d.Skip(check, "no ready endpoint of Service %s/%s is a pod", s.Namespace, s.Name)
		return nil, false
	}
	return out, true
}

// needsToken reports whether --metrics-authentication protects the metrics. The server then
// requires TLS, and says so in its answer to plain HTTP.
func needsToken(status int, body []byte) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || bytes.Contains(body, []byte("HTTP request to an HTTPS server"))
}

func (r *Report) tokenNeeded(check, name string) {
	r.Skip(check, "%s shows its metrics only to callers that the API server authorizes, and doctor sends no token: see your monitoring", name)
}

// metricsOf reads a pod's metrics through the API server's proxy. If a NetworkPolicy blocks
// that, it forwards the port through the kubelet.
func (d *doctor) metricsOf(ctx context.Context, namespace, pod string) ([]byte, error) {
	proxied, cancel := context.WithTimeout(ctx, inspect.DialTimeout)
	defer cancel()
	body, err := d.Client.CoreV1().Pods(namespace).ProxyGet("http", pod, strconv.Itoa(d.MetricsPort), "/metrics", nil).DoRaw(proxied)
	if err == nil || apierrors.IsForbidden(err) || ctx.Err() != nil {
		return body, err
	}
	forwarder := &portforward.Forwarder{Config: d.Config, Client: d.Client}
	client := &http.Client{Timeout: portforward.Timeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return forwarder.DialPod(ctx, namespace, pod, int32(d.MetricsPort)) // it is that of a port
		},
	}}
	status, forwarded, forwardErr := get(ctx, client, "http://"+pod+"/metrics")
	if forwardErr != nil || status != http.StatusOK {
		return body, err // the first error has more detail
	}
	return forwarded, nil
}

// readReplica adds a replica's metrics.
func (r *Report) readReplica(check, name string, body []byte, err error, to *[]replica) bool {
	var metrics map[string]float64
	if err == nil {
		metrics, err = readMetrics(body)
	}
	if err != nil {
		r.Fix(check, "see whether it runs, and whether --metrics-port or --replica is right", "%s does not report its metrics: %v", name, err)
		return false
	}
	*to = append(*to, replica{name, metrics})
	return true
}

// readMetrics reads our own gauges and counters. It sums metrics with several series.
func readMetrics(body []byte) (map[string]float64, error) {
	families, err := callmetrics.Families(body, "sallyport_")
	if err != nil {
		return nil, errors.New("its answer contains no metrics")
	}
	out := map[string]float64{}
	for name, family := range families {
		if !strings.HasPrefix(name, "sallyport_") {
			continue
		}
		for _, m := range family.GetMetric() {
			out[name] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it has no metrics of Sallyport")
	}
	return out, nil
}
