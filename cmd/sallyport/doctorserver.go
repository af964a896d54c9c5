// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/lint"
)

// endpointsOf are the addresses behind a Service.
func (d *doctor) endpointsOf(ctx context.Context, namespace, name string) (ready, other []discoveryv1.Endpoint, err error) {
	list, err := d.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	if err != nil {
		return nil, nil, err
	}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready = append(ready, e)
			} else {
				other = append(other, e)
			}
		}
	}
	return ready, other, nil
}

// checkService looks at the Service and its endpoints.
func (d *doctor) checkService(ctx context.Context) {
	const check = "service"
	s := d.service()
	if s == nil {
		if d.url() != nil {
			d.ok(check, "the server is reached by a URL, %s; none is needed", d.url().Host)
		} else {
			d.skip(check, "it is not known which Service: name it by --service")
		}
		return
	}
	title := s.Namespace + "/" + s.Name
	live, err := d.client.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		d.fix(check, "create it, or correct --service of the server", "there is no Service %s", title)
		return
	case err != nil:
		d.cannot(check, "get services in "+s.Namespace, err)
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
		d.fix(check, "add the port, or correct --service of the server", "Service %s has no port %d", title, port)
		return
	}
	ready, other, err := d.endpointsOf(ctx, s.Namespace, s.Name)
	switch {
	case err != nil:
		d.cannot(check, "list endpointslices in "+s.Namespace, err)
	case len(ready) == 0:
		d.fix(check, "see why its pods are not ready: kubectl --namespace "+s.Namespace+" get pods; and whether the Service selects them",
			"no endpoint of Service %s is ready, of %d", title, len(other))
	case len(ready) == 1:
		d.fix(check, "run two replicas or more, on different nodes", "one endpoint of Service %s is ready: a restart of it is an outage", title)
	default:
		d.ok(check, "%d of %d endpoints of %s are ready", len(ready), len(ready)+len(other), title)
	}
}

// checkReachability asks the server whether it is ready, on the way of the API server
// if it is behind a Service.
func (d *doctor) checkReachability(ctx context.Context) {
	const check = "reachability"
	if s := d.service(); s != nil {
		port := "443"
		if s.Port != nil {
			port = fmt.Sprint(*s.Port)
		}
		body, err := d.client.CoreV1().Services(s.Namespace).ProxyGet("https", s.Name, port, "/readyz", map[string]string{"verbose": ""}).DoRaw(ctx)
		switch {
		case err == nil:
			d.ok(check, "the API server reaches it through Service %s/%s, and it is ready", s.Namespace, s.Name)
		case apierrors.IsForbidden(err):
			d.skip(check, "no permission to get services/proxy in %s", s.Namespace)
		case bytes.Contains(body, []byte("[-]")):
			d.fix(check, "it becomes ready when that is settled; see its log", "it is not ready: %s", failedChecks(body))
		default:
			d.fix(check, "look for a NetworkPolicy, a firewall between control plane and nodes, and a Service that leads elsewhere",
				"the API server does not reach it through Service %s/%s: %v", s.Namespace, s.Name, err)
		}
		return
	}
	u := d.url()
	if u == nil {
		d.skip(check, "it is not known where the server is")
		return
	}
	// Its certificate is looked at elsewhere; here it is asked how it is.
	client := &http.Client{Timeout: dialTimeout, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, //nolint:gosec // see above
	}}
	status, body, err := get(ctx, client, "https://"+u.Host+"/readyz?verbose")
	switch {
	case err != nil && loopbackHost(u.Hostname()):
		d.fix(check, "run doctor on the host of the API server; if it is this one, start the server", "nobody answers at %s", u.Host)
	case err != nil:
		d.fix(check, "start the server, or open the way to it", "nobody answers at %s", u.Host)
	case status != http.StatusOK:
		d.fix(check, "it becomes ready when that is settled; see its log", "it is not ready: %s", failedChecks(body))
	default:
		d.ok(check, "it answers at %s from here, and is ready", u.Host)
	}
}

func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// failedChecks are the lines of /readyz about what is missing.
func failedChecks(body []byte) string {
	var out []string
	for line := range strings.Lines(string(body)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "[-] "); ok {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return "it does not say why"
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
	const most = 16 << 20
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	return resp.StatusCode, body, err
}

// checkCertificate compares the certificate that the server shows with every bundle.
func (d *doctor) checkCertificate(ctx context.Context) {
	const check = "certificate"
	kinds := slices.DeleteFunc(lint.Kinds(), func(gvk metaKind) bool {
		return !slices.Contains([]string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "CustomResourceDefinition"}, gvk.Kind)
	})
	reader, err := readObjects(ctx, d.config, kinds)
	if err != nil {
		d.cannot(check, "list webhook configurations", err)
		return
	}
	own := slices.DeleteFunc(reader.objects, func(o lint.Object) bool {
		return o.Kind != "CustomResourceDefinition" && o.Name != d.registration.Name || o.Kind == "CustomResourceDefinition" && !d.converts(o.Raw)
	})
	inventory, err := lint.ReadCluster(own, reader.missing)
	if err != nil {
		d.cannot(check, "read webhook configurations", err)
		return
	}
	for _, unread := range inventory.Unread() {
		d.skip(check, "%s", unread.Reason)
	}
	endpoints := inventory.Endpoints()
	if len(endpoints) == 0 {
		d.skip(check, "nobody is registered")
		return
	}
	leaves := map[string][]*x509.Certificate{}
	var hidden error
	if d.dial != "" {
		for _, endpoint := range endpoints {
			conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", d.dial)
			if err == nil {
				leaves[endpoint], err = shownCertificates(ctx, endpoint, conn)
			}
			if err != nil {
				d.fix(check, "correct --dial, or start the server", "no certificate at %s: %v", d.dial, err)
				return
			}
		}
	} else {
		leaves = dialAll(ctx, endpoints)
		hidden = d.forwardAll(ctx, endpoints, leaves)
	}
	report := lint.Run(inventory, lint.Options{Rules: []string{"ca-bundle", "crd-ca-bundle"}, Leaves: leaves})
	for _, f := range report.Findings {
		text := f.Object + ": " + f.Message
		if f.Webhook != "" {
			text = f.Webhook + ": " + f.Message
		}
		d.fix(check, "a server that registers itself puts this right by itself: see its log; otherwise "+f.Fix, "%s", text)
	}
	if len(leaves) < len(endpoints) {
		d.hidden(check, hidden)
	} else if len(report.Findings) == 0 {
		last := time.Time{}
		for _, chain := range leaves {
			if last.IsZero() || chain[0].NotAfter.Before(last) {
				last = chain[0].NotAfter
			}
		}
		d.ok(check, "every caBundle verifies the serving certificate, which is valid until %s", last.UTC().Format(time.RFC3339))
	}
}

// forwardAll asks servers behind Services for their certificates through the API server:
// a Service answers only within the cluster. The error says why some are still missing.
func (d *doctor) forwardAll(ctx context.Context, endpoints []string, leaves map[string][]*x509.Certificate) error {
	forwarder := &podForwarder{config: d.config, client: d.client}
	var errs []error
	for _, endpoint := range endpoints {
		name, namespace, ok := serviceOf(endpoint)
		if leaves[endpoint] != nil || !ok {
			continue
		}
		_, text, err := net.SplitHostPort(endpoint)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		port, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		conn, err := forwarder.dialService(ctx, namespace, name, int32(port))
		if err == nil {
			leaves[endpoint], err = shownCertificates(ctx, endpoint, conn)
		}
		if err != nil {
			delete(leaves, endpoint)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// hidden says why the certificate was not seen.
func (d *doctor) hidden(check string, err error) {
	const elsewhere = "run doctor in the cluster, or name a forwarded port by --dial"
	if err == nil {
		d.skip(check, "the server does not show its certificate to here: %s", elsewhere)
		return
	}
	d.skip(check, "the certificate is not seen from here: %v; %s", err, elsewhere)
}

// checkAuthority compares the authority in its Secret with every bundle.
func (d *doctor) checkAuthority(ctx context.Context) {
	const check = "authority"
	endpoint := d.registration.Config().Endpoint
	namespace, name, ok := d.certificates.AuthoritySecret(endpoint)
	if s := d.service(); !ok && s != nil {
		namespace, name, ok = s.Namespace, d.certificates.DefaultSecret, true
	}
	if !ok {
		d.skip(check, "the server keeps it in memory, or --authority-secret says where it is")
		return
	}
	secret, err := d.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		d.skip(check, "there is no Secret %s/%s: the certificate is from files, or no server has started yet", namespace, name)
		return
	case err != nil:
		d.cannot(check, "get Secret "+namespace+"/"+name, err)
		return
	}
	status, err := certificate.ReadStatus(secret)
	if err != nil {
		d.fix(check, "restore the Secret, or delete it while no server runs", "Secret %s/%s holds no authority: %v", namespace, name, err)
		return
	}
	lacking := 0
	for _, w := range d.webhooks {
		if !certificate.Holds(w.client.CABundle, status.Signer) {
			lacking++
			d.fix(check, "a server that registers itself puts this right: see its log; otherwise write the authority of the Secret into the caBundle",
				"the caBundle of %s %s does not hold the authority that signs", w.kind, w.name)
		}
	}
	switch {
	case lacking > 0:
	case status.Phase != certificate.PhaseSteady:
		d.ok(check, "a rotation is %s; 'sallyport certificates status' tells what it waits for", status.Phase)
	case time.Until(status.Signer.NotAfter) < 30*24*time.Hour:
		d.fix(check, "sallyport certificates rotate", "the authority ends on %s, and no rotation is on its way", status.Signer.NotAfter.UTC().Format(time.DateOnly))
	default:
		d.ok(check, "every caBundle holds it, and it is valid until %s", status.Signer.NotAfter.UTC().Format(time.DateOnly))
	}
}

// replica is what one replica says of itself.
type replica struct {
	name    string
	metrics map[string]float64 // by the name, with the value of the label phase if it has one
}

// checkReplicas compares what the replicas say of themselves.
func (d *doctor) checkReplicas(ctx context.Context) {
	const check = "replicas"
	replicas, ok := d.askReplicas(ctx)
	if !ok {
		return
	}
	before := len(d.found)
	for _, problem := range []struct{ metric, text, remedy string }{
		{"sallyport_certificate_problem", "has a problem with its certificate", "see its log"},
		{"sallyport_certificate_rotation_problem", "cannot go on with the rotation of the authority", "see its log, and sallyport certificates status"},
		{"sallyport_certificate_held", "keeps an old certificate, as a published caBundle would refuse a new one", "see who writes the caBundle"},
	} {
		for _, r := range replicas {
			if r.metrics[problem.metric] > 0 {
				d.fix(check, problem.remedy, "%s %s", r.name, problem.text)
			}
		}
	}
	for _, r := range replicas {
		if registered, ok := r.metrics["sallyport_registration_registered"]; ok && registered == 0 {
			d.fix(check, "see its log, and the events RegistrationConflict: another server of this name, or somebody, writes them too, or it may not write",
				"%s wants the webhook configurations to be different", r.name)
		}
		if good, ok := r.metrics["sallyport_config_last_reload_successful"]; ok && good == 0 {
			d.fix(check, "correct the file: sallyport config check names the mistakes", "%s goes on with an earlier configuration: the file is not good", r.name)
		}
	}
	for _, agreed := range []struct{ metric, what, remedy string }{
		{"sallyport_certificate_authority_not_after_timestamp_seconds", "which authority signs", "replicas follow within certificate.caPropagation; if they do not, see whether each may read the Secret"},
		{"sallyport_poddefaults", "how many PodDefaults there are", "one of them has lost its watch if this stays so: see its log"},
		{"sallyport_projects", "how many namespaces count", "one of them has lost its watch if this stays so: see its log"},
	} {
		for _, r := range replicas[min(1, len(replicas)):] {
			if r.metrics[agreed.metric] != replicas[0].metrics[agreed.metric] {
				d.fix(check, agreed.remedy, "%s and %s do not agree on %s", replicas[0].name, r.name, agreed.what)
			}
		}
	}
	if len(d.found) == before {
		names := make([]string, len(replicas))
		for i, r := range replicas {
			names[i] = r.name
		}
		d.ok(check, "%s agree, and report no problem", strings.Join(names, ", "))
	}
}

// askReplicas reads the metrics of all replicas. If it is not ok, it has said why.
func (d *doctor) askReplicas(ctx context.Context) ([]replica, bool) {
	const check = "replicas"
	var out []replica
	if len(d.replicas) > 0 {
		client := &http.Client{Timeout: dialTimeout}
		for _, base := range d.replicas {
			status, body, err := get(ctx, client, strings.TrimRight(base, "/")+"/metrics")
			if needsToken(status, body) {
				d.tokenNeeded(check, base)
				return nil, false
			}
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("it answers with status %d", status)
			}
			if !d.read(check, base, body, err, &out) {
				return nil, false
			}
		}
		return out, true
	}
	s := d.service()
	if s == nil {
		d.skip(check, "a server that is reached by a URL is asked only if --replica names its metrics")
		return nil, false
	}
	ready, _, err := d.endpointsOf(ctx, s.Namespace, s.Name)
	if err != nil {
		d.cannot(check, "list endpointslices in "+s.Namespace, err)
		return nil, false
	}
	for _, e := range ready {
		if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
			continue
		}
		body, err := d.metricsOf(ctx, s.Namespace, e.TargetRef.Name)
		if apierrors.IsForbidden(err) {
			d.skip(check, "no permission to get pods/proxy in %s", s.Namespace)
			return nil, false
		}
		if err != nil && needsToken(0, body) {
			d.tokenNeeded(check, e.TargetRef.Name)
			return nil, false
		}
		if !d.read(check, e.TargetRef.Name, body, err, &out) {
			return nil, false
		}
	}
	if len(out) == 0 {
		d.skip(check, "no ready endpoint of Service %s/%s is a pod", s.Namespace, s.Name)
		return nil, false
	}
	return out, true
}

// needsToken tells whether metrics are there for those whom --metrics-authentication lets read
// them: over TLS, as a server says by its own words to whoever speaks without.
func needsToken(status int, body []byte) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || bytes.Contains(body, []byte("HTTP request to an HTTPS server"))
}

func (d *doctor) tokenNeeded(check, name string) {
	d.skip(check, "%s shows its metrics to those only whom the API server allows, and doctor shows no token: see whoever scrapes them", name)
}

// metricsOf asks a pod on the way of the API server, or, where a NetworkPolicy keeps that
// from its port, on the way of its kubelet.
func (d *doctor) metricsOf(ctx context.Context, namespace, pod string) ([]byte, error) {
	proxied, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	body, err := d.client.CoreV1().Pods(namespace).ProxyGet("http", pod, strconv.Itoa(d.metricsPort), "/metrics", nil).DoRaw(proxied)
	if err == nil || apierrors.IsForbidden(err) || ctx.Err() != nil {
		return body, err
	}
	forwarder := &podForwarder{config: d.config, client: d.client}
	client := &http.Client{Timeout: forwardTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return forwarder.dialPod(ctx, namespace, pod, int32(d.metricsPort)) //nolint:gosec // it is that of a port
		},
	}}
	status, forwarded, forwardErr := get(ctx, client, "http://"+pod+"/metrics")
	if forwardErr != nil || status != http.StatusOK {
		return body, err // which says more of what is wrong
	}
	return forwarded, nil
}

// read adds what a replica says.
func (d *doctor) read(check, name string, body []byte, err error, to *[]replica) bool {
	var metrics map[string]float64
	if err == nil {
		metrics, err = readMetrics(body)
	}
	if err != nil {
		d.fix(check, "see whether it runs, and whether --metrics-port or --replica is right", "%s does not tell its metrics: %v", name, err)
		return false
	}
	*to = append(*to, replica{name, metrics})
	return true
}

// readMetrics reads the gauges and counters of our own; those with several series are
// added up.
func readMetrics(body []byte) (map[string]float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("what it says are no metrics")
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
