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
		d.checkConfigurations, d.checkGuard, d.checkService, d.checkReachability, d.checkCertificate, d.checkAuthority, d.checkReplicas, d.checkLeader,
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

func (d *doctor) ok(check, format string, args ...any) {
	d.Checks = append(d.Checks, Diagnosis{Check: check, Status: OK, Text: fmt.Sprintf(format, args...)})
}

func (d *doctor) skip(check, format string, args ...any) {
	d.Checks = append(d.Checks, Diagnosis{Check: check, Status: Skipped, Text: fmt.Sprintf(format, args...)})
}

func (d *doctor) fix(check, remedy, format string, args ...any) {
	d.Checks = append(d.Checks, Diagnosis{Check: check, Status: Fix, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// unread reports why something could not be checked: rights, or an error.
func (d *doctor) unread(check, what string, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		d.skip(check, "no permission to %s", what)
		return
	}
	d.fix(check, "see whether the API server is well, and try again", "%s: %v", what, err)
}

// checkConfigurations finds the webhooks of the server.
func (d *doctor) checkConfigurations(ctx context.Context) {
	const check = "configurations"
	name := d.Registration.Name
	if d.webhooks, d.webhooksErr = d.Webhooks(ctx, name); d.webhooksErr != nil {
		d.unread(check, "get mutatingwebhookconfigurations and validatingwebhookconfigurations", d.webhooksErr)
		return
	}
	if len(d.webhooks) == 0 {
		if len(d.Static) > 0 {
			d.skip(check, "no webhook configuration %s in the API; see static-manifests", name)
			return
		}
		d.fix(check, "see the log of the server: it registers its webhooks when it is ready; or name the configurations by --configuration-name",
			"there is no webhook configuration %s with a webhook", name)
		return
	}
	names := make([]string, len(d.webhooks))
	for i, w := range d.webhooks {
		names[i] = w.Name
	}
	d.ok(check, "%s registers %s", name, strings.Join(names, ", "))
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
