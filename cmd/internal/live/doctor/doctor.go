// SPDX-License-Identifier: Apache-2.0

// Package doctor checks an installation from outside and changes nothing: the API server, the
// webhook configurations, the server and its certificate, its permissions, and failed calls.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// A Status is the outcome of a check.
type Status string

// The outcomes of a check.
const (
	OK      Status = "ok"
	Fix     Status = "fix"     // something is broken
	Note    Status = "note"    // worth a look, but the installation works
	Skipped Status = "skip"    // the check could not run
	Unknown Status = "unknown" // it could not be found out whether something is broken
)

// A Diagnosis is an outcome of a check. A check may have several.
type Diagnosis struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Text   string `json:"text"`
	// Remedy is the fix, for Fix, Note and Unknown.
	Remedy string `json:"remedy,omitempty"`
}

// DefaultMetricsPort is the port of replicas for metrics and probes unless the server sets another.
const DefaultMetricsPort = 8080

// Options select the installation and how doctor reaches its servers.
type Options struct {
	// Program is the name of the command. Serve is the command that runs a server: the program
	// or one of its subcommands.
	Program, Serve string
	// Discloses says what the webhooks' answers reveal to a caller.
	Discloses string
	// Rights returns the objects that 'manifests --part rbac' prints for the installation.
	Rights func(*Installation) ([]runtime.Object, error)
	// Leases names the server's leases other than its authority's. They may be absent.
	Leases []string
	// Also runs after the check of the webhook configurations and checks what only this server
	// has. It may be nil.
	Also func(context.Context, *Installation, *Report)
	// Registration and Certificate are the server's known settings. If Service is empty, doctor
	// finds it in the webhook configurations that Registration.Name selects.
	Registration registration.Settings
	Certificate  certificate.Settings
	// ServiceAccount is the server's service account: a name in the namespace of the Service,
	// or namespace/name.
	ServiceAccount string
	// MetricsPort is the port of the replicas for metrics and probes. Replicas are URLs of
	// metrics that doctor reads instead of the metrics behind the Service.
	MetricsPort int
	Replicas    []string
	// Dial is host:port of a replica whose certificate is checked; empty for the endpoints in
	// the webhook configurations.
	Dial string
	// Static lists directories of static admission manifests.
	Static []string
	// Window is how long to watch for further failures, if calls have failed.
	Window time.Duration
}

// An Installation is what doctor knows about a server.
type Installation struct {
	Cluster *cluster.Cluster
	// Registration and Certificate come from [Options], with the Service or the URL that the
	// webhook configurations name. Both are empty if they are unknown.
	Registration registration.Settings
	Certificate  certificate.Settings
	// ServiceAccount is the name of the server's service account, without its namespace.
	ServiceAccount string
	// Webhooks are the registered webhooks. WebhooksErr says why they could not be read.
	Webhooks    []cluster.Webhook
	WebhooksErr error
}

// A Report has the outcomes of all checks in order.
type Report struct {
	Checks []Diagnosis `json:"checks"`
}

// Sound reports whether nothing needs a fix.
func (r *Report) Sound() bool {
	for _, d := range r.Checks {
		if d.Status == Fix {
			return false
		}
	}
	return true
}

// Certain reports whether everything that matters could be found out.
func (r *Report) Certain() bool {
	return !slices.ContainsFunc(r.Checks, func(d Diagnosis) bool { return d.Status == Unknown })
}

// Print prints the report as text.
func (r *Report) Print(out io.Writer) error {
	var text strings.Builder
	for _, d := range r.Checks {
		fmt.Fprintf(&text, "%-5s %-15s %s\n", d.Status, d.Check, manifest.Printable(cli.OneLine(d.Text)))
		if d.Remedy != "" {
			fmt.Fprintf(&text, "      %-15s %s\n", "", manifest.Printable(cli.OneLine(d.Remedy)))
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// Run runs all checks. It returns an error if the API server is unreachable or the context
// ends.
func Run(ctx context.Context, config *rest.Config, o Options) (*Report, error) {
	config = rest.CopyConfig(config)
	config.Timeout = cmp.Or(config.Timeout, 30*time.Second)
	d := &doctor{Options: o, clock: &clockTransport{}}
	config.Wrap(d.clock.wrap)
	var err error
	if d.Cluster, err = cluster.New(config, ""); err != nil {
		return nil, err
	}
	if err := d.checkAPIServer(); err != nil {
		return nil, err
	}
	d.calls, d.callsErr = d.readCalls(ctx)
	for _, check := range []func(context.Context){
		d.checkConfigurations, d.checkForeignTerms, d.checkAlso, d.checkService, d.checkReachability, d.checkCertificate, d.checkAuthority, d.checkReplicas, d.checkLeader,
		d.checkRights, d.checkCallers, d.checkCalls, d.checkLatency, d.checkStatic, func(ctx context.Context) { checkPolicies(ctx, d) },
	} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		check(ctx)
	}
	d.checkClock()
	return &d.Report, nil
}

// doctor checks one installation.
type doctor struct {
	Options
	Report
	*cluster.Cluster
	clock *clockTransport

	webhooks    []cluster.Webhook
	webhooksErr error
	calls       *callmetrics.Counters // at the start of doctor
	callsErr    error
}

// OK records a passed check.
func (r *Report) OK(check, format string, args ...any) {
	r.Checks = append(r.Checks, Diagnosis{Check: check, Status: OK, Text: fmt.Sprintf(format, args...)})
}

// Skip records why a check could not run.
func (r *Report) Skip(check, format string, args ...any) {
	r.Checks = append(r.Checks, Diagnosis{Check: check, Status: Skipped, Text: fmt.Sprintf(format, args...)})
}

// Fix records a problem and its remedy.
func (r *Report) Fix(check, remedy, format string, args ...any) {
	r.Checks = append(r.Checks, Diagnosis{Check: check, Status: Fix, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// Unknown records what could not be found out, and why.
func (r *Report) Unknown(check, remedy, format string, args ...any) {
	r.Checks = append(r.Checks, Diagnosis{Check: check, Status: Unknown, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// Note records what is worth a look.
func (r *Report) Note(check, format string, args ...any) {
	r.Checks = append(r.Checks, Diagnosis{Check: check, Status: Note, Text: fmt.Sprintf(format, args...)})
}

// Unread records a failed request. If the user lacks the permission, the check is skipped. What
// names the request, such as "get services".
func (r *Report) Unread(check, what string, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		r.Skip(check, "no permission to %s", what)
		return
	}
	r.Fix(check, "see whether the API server is well, and try again", "%s: %v", what, err)
}

// checkConfigurations finds the server's webhooks.
func (d *doctor) checkConfigurations(ctx context.Context) {
	const check = "configurations"
	name := d.Registration.Name
	if d.webhooks, d.webhooksErr = d.Webhooks(ctx, name); d.webhooksErr != nil {
		d.Unread(check, "get mutatingwebhookconfigurations and validatingwebhookconfigurations", d.webhooksErr)
		return
	}
	if len(d.webhooks) == 0 {
		if len(d.Static) > 0 {
			d.Skip(check, "no webhook configuration %s in the API; see static-manifests", name)
			return
		}
		d.Fix(check, "see the log of the server: it registers its webhooks when it is ready; or name the configurations by --configuration-name",
			"there is no webhook configuration %s with a webhook", name)
		return
	}
	names := make([]string, len(d.webhooks))
	for i, w := range d.webhooks {
		names[i] = w.Name
	}
	d.OK(check, "%s registers %s", name, strings.Join(names, ", "))
}

// checkAlso runs [Options.Also].
func (d *doctor) checkAlso(ctx context.Context) {
	if d.Also != nil {
		d.Also(ctx, d.installation(), &d.Report)
	}
}

func (d *doctor) installation() *Installation {
	of := &Installation{
		Cluster: d.Cluster, Registration: d.Registration, Certificate: d.Certificate, Webhooks: d.webhooks, WebhooksErr: d.webhooksErr,
		ServiceAccount: d.ServiceAccount[strings.Index(d.ServiceAccount, "/")+1:],
	}
	if s := d.service(); s != nil && of.Registration.Service == nil {
		of.Registration.Service = &registration.Service{Namespace: s.Namespace, Name: s.Name}
	} else if u := d.url(); u != nil && s == nil {
		of.Registration.URL = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	}
	return of
}

// service returns the Service from the options or from the configurations. It is nil if the
// server is reached by a URL or unknown.
func (d *doctor) service() *admissionregistrationv1.ServiceReference {
	if s := hosting.Config(&d.Registration).Endpoint.Service; s != nil {
		port := s.Port
		if port == 0 {
			port = 443
		}
		return &admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Port: &port}
	}
	for _, w := range d.webhooks {
		if s := w.ClientConfig.Service; s != nil {
			return s
		}
	}
	return nil
}

// url returns the server's URL. It is nil if the server is reached by a Service or unknown.
func (d *doctor) url() *url.URL {
	for _, w := range d.webhooks {
		if w.ClientConfig.URL != nil {
			if u, err := url.Parse(*w.ClientConfig.URL); err == nil {
				return u
			}
		}
	}
	return nil
}
