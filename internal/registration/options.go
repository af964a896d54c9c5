// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
)

// DefaultFieldManager is the field manager of Sallyport.
const DefaultFieldManager = "sallyport"

// Options are the options of a [Controller].
type Options struct {
	// Config has the names of the objects and the address of the server.
	Config Config
	// Client needs the permissions of [PolicyRules].
	Client admissionregistrationclient.AdmissionregistrationV1Interface

	// Webhooks returns the current definitions. It is called often and must be fast; a
	// change takes effect with the next call of [Controller.Notify] or the next recheck.
	Webhooks func() []admission.Webhook
	// CABundle returns the current PEM-encoded CA bundle for the API server to trust. An
	// error means that it is not known yet: nothing is written until it is. An empty bundle
	// without an error leaves the field to another manager (a CA injector) or to the system
	// roots. It is called often and must be fast.
	CABundle func() ([]byte, error)

	// Conversions returns the custom resources that this application currently converts,
	// like Webhooks. If it is nil, definitions of custom resources are neither read nor
	// written.
	//
	// Only spec.conversion of a definition is written, and no definition is created: a
	// missing definition gets its stanza when it appears. The stanza of a definition that
	// is no longer converted stays unchanged, because objects may be stored in versions
	// that only a webhook can convert.
	Conversions func() []Conversion
	// CRDs needs the permissions of [ConversionPolicyRules]. Required if Conversions is set.
	CRDs crdclient.Interface
	// ConversionCABundle is the CABundle for conversions; nil means CABundle. A server can
	// convert as soon as it has its certificate, before its other dependencies are ready.
	ConversionCABundle func() ([]byte, error)

	// Leading reports whether this Controller may write; nil means always. While it may not, it
	// watches, and [Controller.Registered] reports whether the leader has written what this
	// Controller would write. Call [Controller.Notify] when the result changes. It must be fast.
	Leading func() bool

	// RefuseForeignTerms removes the selector terms and match conditions that other clients
	// add to the webhooks. By default they are preserved and reported.
	RefuseForeignTerms bool
	// ForeignTerms, if not nil, is called with a description of these terms whenever they
	// change; empty for none. It must be fast.
	ForeignTerms func(description string)

	// FieldManager defaults to [DefaultFieldManager].
	FieldManager string
	// Recheck is how often the objects are applied without apparent drift. Default 10
	// minutes. Up to a fifth is added as jitter between replicas.
	Recheck time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Events records an event when another client keeps changing our fields, unless it is
	// nil. Events about cluster-scoped objects are in the namespace default; see
	// [EventPolicyRules].
	Events events.EventRecorder
	// Registry registers the metrics, unless it is nil.
	Registry prometheus.Registerer
}

func (o *Options) complete() error {
	errs := []error{o.Config.Validate()}
	if o.Client == nil {
		errs = append(errs, errors.New("option Client is required"))
	}
	if o.Webhooks == nil {
		errs = append(errs, errors.New("option Webhooks is required"))
	}
	if o.CABundle == nil {
		errs = append(errs, errors.New("option CABundle is required"))
	}
	if o.Conversions != nil && o.CRDs == nil {
		errs = append(errs, errors.New("CRDs is required with Conversions"))
	}
	if o.Recheck < 0 {
		errs = append(errs, errors.New("recheck must not be negative"))
	}
	if o.ConversionCABundle == nil {
		o.ConversionCABundle = o.CABundle
	}
	if o.Leading == nil {
		o.Leading = func() bool { return true }
	}
	if o.FieldManager == "" {
		o.FieldManager = DefaultFieldManager
	}
	if o.Recheck == 0 {
		o.Recheck = 10 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return errors.Join(errs...)
}
