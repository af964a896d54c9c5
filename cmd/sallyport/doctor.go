// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/manifest"
)

// Statuses of what a doctor looked at.
const (
	doctorOK   = "ok"
	doctorFix  = "fix"
	doctorSkip = "skip" // it could not be looked at
)

// diagnosis is one line of doctor.
type diagnosis struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Text   string `json:"text"`
	// Remedy says what to do, for the status fix.
	Remedy string `json:"remedy,omitempty"`
}

var doctorOutputs = []string{"text", "json"}

type doctorOptions struct {
	certificatesOptions
	serviceAccount string
	metricsPort    int
	replicas       []string
	dial           string
	static         []string
	window         time.Duration
	output         string
}

func newDoctorCommand() *cobra.Command {
	o := doctorOptions{certificatesOptions: newCertificatesOptions()}
	cmd := &cobra.Command{
		Use:   "doctor [--service NAMESPACE/NAME]",
		Short: "Find out why webhooks do not work: each line says ok, or what to do",
		Long: "Doctor looks at an installation from outside, and changes nothing: the API server and its clock, the\n" +
			"webhook configurations, the Service and the replicas behind it, the certificate and every caBundle, the\n" +
			"rights of the server, calls that failed, and static admission manifests. It finds the server in the\n" +
			"webhook configurations. What it may not look at, it says.\n\n" +
			"The exit status is 0 if nothing is to do, 2 if something is, and 1 if the API server cannot be asked.",
		Example: "  sallyport doctor\n" +
			"  sallyport doctor --service sallyport-system/sallyport --output json\n\n" +
			"  # without the right to forward ports of pods, with one that somebody else forwards\n" +
			"  sallyport doctor --dial 127.0.0.1:9443",
		Args: noArguments("everything is said by flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return o.run(ctx, cmd.OutOrStdout())
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	addFlagGroup(cmd, "Server", func() {
		flags.StringVar(&o.registration.Name, "configuration-name", o.registration.Name, "`name` of the webhook configurations")
		flags.StringVar(&o.serviceAccount, "service-account", "sallyport", "`name` of the server's service account, in the namespace of the Service, or namespace/name")
		flags.IntVar(&o.metricsPort, "metrics-port", 8080, "`port` of the replicas for metrics and probes")
		flags.StringArrayVar(&o.replicas, "replica", nil, "`url` of the metrics of a replica that is reached from here, such as http://127.0.0.1:8080, instead of those behind the Service; may be repeated")
		flags.StringVar(&o.dial, "dial", "", "`host:port` where a replica is reached from here, to look at its certificate; empty for the Service, and where that does not answer for a pod of it, through the API server")
		flags.StringArrayVar(&o.static, "static-manifests-dir", nil, "`directory` of static admission manifests on this host; may be repeated")
		cli.CompleteFolders(cmd, "static-manifests-dir")
		flags.DurationVar(&o.window, "window", 10*time.Second, "if the API server has counted calls that failed: how `long` to watch whether more do; 0 for as long as the other checks take")
	})
	addFlagGroup(cmd, "Output", func() {
		flags.StringVarP(&o.output, "output", "o", doctorOutputs[0], "`format` of the output: "+cli.OneOf(doctorOutputs))
		cli.CompleteChoices(cmd, "output", doctorOutputs)
	})
	return cmd
}

// validate reports every mistake. The Service may be left out: it stands in the
// configurations.
func (o *doctorOptions) validate() error {
	errs := []error{cli.Choice("output", o.output, doctorOutputs), o.certificates.ValidateSource()}
	if o.registration.Service != "" {
		errs = append(errs, o.registration.ValidateEndpoint())
	}
	if problems := validation.IsDNS1123Subdomain(o.registration.Name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--configuration-name %q: %s", o.registration.Name, strings.Join(problems, "; ")))
	}
	if o.metricsPort < 1 || o.metricsPort > 65535 {
		errs = append(errs, fmt.Errorf("--metrics-port %d is outside 1 to 65535", o.metricsPort))
	}
	for _, replica := range o.replicas {
		if u, err := url.Parse(replica); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("--replica %q: write a URL such as http://127.0.0.1:8080", replica))
		}
	}
	if o.window < 0 || o.window > time.Hour {
		errs = append(errs, fmt.Errorf("--window %s is outside 0 to 1h", o.window))
	}
	if o.dial != "" {
		if _, _, err := net.SplitHostPort(o.dial); err != nil {
			errs = append(errs, fmt.Errorf("--dial %q: write HOST:PORT", o.dial))
		}
	}
	return hosting.ByFlags(errors.Join(errs...))
}

// doctor looks at one installation.
type doctor struct {
	*doctorOptions
	config *rest.Config
	client kubernetes.Interface
	clock  *clockTransport
	found  []diagnosis

	webhooks []registeredWebhook // of the live configurations
	calls    *callCounters       // as doctor began
	callsErr error
}

// registeredWebhook is a webhook in a live configuration.
type registeredWebhook struct {
	kind, name string
	client     admissionregistrationv1.WebhookClientConfig
}

func (d *doctor) ok(check, format string, args ...any) {
	d.found = append(d.found, diagnosis{Check: check, Status: doctorOK, Text: fmt.Sprintf(format, args...)})
}

func (d *doctor) skip(check, format string, args ...any) {
	d.found = append(d.found, diagnosis{Check: check, Status: doctorSkip, Text: fmt.Sprintf(format, args...)})
}

func (d *doctor) fix(check, remedy, format string, args ...any) {
	d.found = append(d.found, diagnosis{Check: check, Status: doctorFix, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// cannot says why something could not be looked at: rights, or an error.
func (d *doctor) cannot(check, what string, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		d.skip(check, "no permission to %s", what)
		return
	}
	d.fix(check, "see whether the API server is well, and try again", "%s: %v", what, err)
}

func (o *doctorOptions) run(ctx context.Context, out io.Writer) error {
	d := &doctor{doctorOptions: o}
	var err error
	if d.config, err = o.clientConfig(); err != nil {
		return err
	}
	d.config.QPS, d.config.Burst, d.config.Timeout = 50, 100, 30*time.Second
	d.clock = &clockTransport{}
	d.config.Wrap(d.clock.wrap)
	if d.client, err = kubernetes.NewForConfig(d.config); err != nil {
		return err
	}
	if err := d.checkAPIServer(ctx); err != nil {
		return err
	}
	d.calls, d.callsErr = d.readCalls(ctx)
	for _, check := range []func(context.Context){
		d.checkConfigurations, d.checkGuard, d.checkService, d.checkReachability, d.checkCertificate, d.checkAuthority, d.checkReplicas, d.checkLeader,
		d.checkRights, d.checkCallers, d.checkCalls, d.checkStatic,
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		check(ctx)
	}
	d.checkClock()
	if o.output == "json" {
		err = d.printJSON(out)
	} else {
		err = d.printText(out)
	}
	if err != nil {
		return err
	}
	for _, f := range d.found {
		if f.Status == doctorFix {
			return exitStatus(exitFound)
		}
	}
	return nil
}

func (d *doctor) printJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Checks []diagnosis `json:"checks"`
	}{d.found})
}

func (d *doctor) printText(out io.Writer) error {
	var text strings.Builder
	for _, f := range d.found {
		fmt.Fprintf(&text, "%-5s %-15s %s\n", f.Status, f.Check, manifest.Printable(oneLine(f.Text)))
		if f.Remedy != "" {
			fmt.Fprintf(&text, "      %-15s %s\n", "", manifest.Printable(oneLine(f.Remedy)))
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// checkConfigurations finds the webhooks of the server.
func (d *doctor) checkConfigurations(ctx context.Context) {
	const check = "configurations"
	name := d.registration.Name
	api := d.client.AdmissionregistrationV1()
	mutating, err := api.MutatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		for _, w := range mutating.Webhooks {
			d.webhooks = append(d.webhooks, registeredWebhook{"MutatingWebhookConfiguration", w.Name, w.ClientConfig})
		}
	} else if !apierrors.IsNotFound(err) {
		d.cannot(check, "get mutatingwebhookconfigurations", err)
		return
	}
	validating, err := api.ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		for _, w := range validating.Webhooks {
			d.webhooks = append(d.webhooks, registeredWebhook{"ValidatingWebhookConfiguration", w.Name, w.ClientConfig})
		}
	} else if !apierrors.IsNotFound(err) {
		d.cannot(check, "get validatingwebhookconfigurations", err)
		return
	}
	if len(d.webhooks) == 0 {
		if len(d.static) > 0 {
			d.skip(check, "no webhook configuration %s in the API; see static-manifests", name)
			return
		}
		d.fix(check, "see the log of the server: it registers its webhooks when it is ready; or name the configurations by --configuration-name",
			"there is no webhook configuration %s with a webhook", name)
		return
	}
	names := make([]string, len(d.webhooks))
	for i, w := range d.webhooks {
		names[i] = w.name
	}
	d.ok(check, "%s registers %s", name, strings.Join(names, ", "))
}

// service is the one that the webhooks are called by: the one of the flag, or of the
// configurations.
func (d *doctor) service() *admissionregistrationv1.ServiceReference {
	if s := d.registration.Config().Endpoint.Service; s != nil {
		port := s.Port
		if port == 0 {
			port = 443
		}
		return &admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Port: &port}
	}
	for _, w := range d.webhooks {
		if s := w.client.Service; s != nil {
			return s
		}
	}
	return nil
}

// url is that of the server, if it is reached by one.
func (d *doctor) url() *url.URL {
	for _, w := range d.webhooks {
		if w.client.URL != nil {
			if u, err := url.Parse(*w.client.URL); err == nil {
				return u
			}
		}
	}
	return nil
}
