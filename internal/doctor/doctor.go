// SPDX-License-Identifier: Apache-2.0

// Package doctor checks an installation from outside, and changes nothing: the API server,
// the webhook configurations, the server and its certificate, its rights, and calls that
// failed.
package doctor

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/callmetrics"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/manifest"
)

// A Status is the outcome of a check.
type Status string

// The outcomes of a check.
const (
	OK      Status = "ok"
	Fix     Status = "fix"  // something is wrong
	Note    Status = "note" // something is worth a look, and not wrong with the installation
	Skipped Status = "skip" // it could not be checked
)

// A Diagnosis is the outcome of one check, or one of its outcomes.
type Diagnosis struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Text   string `json:"text"`
	// Remedy says what to do, for Fix and Note.
	Remedy string `json:"remedy,omitempty"`
}

// Options say which installation is checked, and how its servers are reached.
type Options struct {
	// Program is the name of the command, Serve what runs a server: the program or one of its
	// commands.
	Program, Serve string
	// Discloses says what answers of the webhooks tell a caller.
	Discloses string
	// Rights returns the objects that 'manifests --part rbac' prints for the installation.
	Rights func(*Installation) ([]runtime.Object, error)
	// Leases are the names of leases of the server beside the one of its authority. It need not
	// have them.
	Leases []string
	// Also checks what only this server has, after the webhook configurations; nil for nothing.
	Also func(context.Context, *Installation, *Report)
	// Registration and Certificate are the server's settings as far as they are known. An
	// empty Service is found in the webhook configurations named by Registration.Name.
	Registration hosting.RegistrationSettings
	Certificate  hosting.CertificateSettings
	// ServiceAccount is the server's: a name in the namespace of the Service, or
	// namespace/name.
	ServiceAccount string
	// MetricsPort is the port of replicas for metrics and probes. Replicas are URLs of
	// metrics that are read instead of those behind the Service.
	MetricsPort int
	Replicas    []string
	// Dial is host:port of a replica that shows its certificate; empty for the endpoints of
	// the webhook configurations.
	Dial string
	// Static are directories of static admission manifests.
	Static []string
	// Window is how long to watch whether calls still fail, if some have failed.
	Window time.Duration
}

// An Installation is what doctor knows about a server.
type Installation struct {
	Cluster *cluster.Cluster
	// Registration and Certificate are those of [Options], with the Service or, without one, the
	// URL that the webhook configurations name. Both are empty if they are unknown.
	Registration hosting.RegistrationSettings
	Certificate  hosting.CertificateSettings
	// ServiceAccount is the name of the server's service account, without its namespace.
	ServiceAccount string
	// Webhooks are the registered ones; WebhooksErr says why they could not be read.
	Webhooks    []cluster.Webhook
	WebhooksErr error
}

// A Report has the outcomes of all checks, in their order.
type Report struct {
	Checks []Diagnosis `json:"checks"`
}

// Sound tells whether there is nothing to fix.
func (r *Report) Sound() bool {
	for _, d := range r.Checks {
		if d.Status == Fix {
			return false
		}
	}
	return true
}

// Print prints the report for people.
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

// Run does all checks. It returns an error if the API server cannot be asked, or if the
// context ends.
func Run(ctx context.Context, config *rest.Config, o Options) (*Report, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 30 * time.Second
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
		d.checkConfigurations, d.checkAlso, d.checkService, d.checkReachability, d.checkCertificate, d.checkAuthority, d.checkReplicas, d.checkLeader,
		d.checkRights, d.checkCallers, d.checkCalls, d.checkLatency, d.checkStatic,
	} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		check(ctx)
	}
	d.checkClock()
	return &d.Report, nil
}

// doctor looks at one installation.
type doctor struct {
	Options
	Report
	*cluster.Cluster
	clock *clockTransport

	webhooks    []cluster.Webhook
	webhooksErr error
	calls       *callmetrics.Counters // when doctor began
	callsErr    error
}

// OK reports that nothing is wrong.
func (r *Report) OK(check, format string, args ...any) {
	r.Checks = append(r.Checks, Diagnosis{Check: check, Status: OK, Text: fmt.Sprintf(format, args...)})
}

// Skip reports why something could not be checked.
func (r *Report) Skip(check, format string, args ...any) {
	r.Checks = append(r.Checks, Diagnosis{Check: check, Status: Skipped, Text: fmt.Sprintf(format, args...)})
}

// Fix reports what is wrong. The remedy says what to do.
func (r *Report) Fix(check, remedy, format string, args ...any) {
	r.Checks = append(r.Checks, Diagnosis{Check: check, Status: Fix, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// Unread reports that a request for a check failed: it skips the check if the user lacks the
// rights. What names the request, such as "get services".
func (r *Report) Unread(check, what string, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		r.Skip(check, "no permission to %s", what)
		return
	}
	r.Fix(check, "see whether the API server is well, and try again", "%s: %v", what, err)
}

// checkConfigurations finds the webhooks of the server.
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

// checkAlso runs the check of the options.
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
	if s := d.service(); s != nil && of.Registration.Service == "" {
		of.Registration.Service = s.Namespace + "/" + s.Name
	} else if u := d.url(); u != nil && s == nil {
		of.Registration.URL = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	}
	return of
}

// service is the one of the options or, without one, of the configurations; nil if the
// server is reached by a URL, or unknown.
func (d *doctor) service() *admissionregistrationv1.ServiceReference {
	if s := d.Registration.Config().Endpoint.Service; s != nil {
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

// url is the server's; nil if it is reached by a Service, or unknown.
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
