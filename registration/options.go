// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/admission"
)

// DefaultFieldManager is the name under which Sallyport owns fields.
const DefaultFieldManager = "sallyport"

// Options are what a [Keeper] works with.
type Options struct {
	// Config names the objects and says where the server is.
	Config Config
	// Client needs the rights of [PolicyRules].
	Client admissionregistrationclient.AdmissionregistrationV1Interface

	// Webhooks returns the definitions as they are now. It is asked often and must
	// be fast; a change takes effect with the next call of [Keeper.Notify], or with
	// the next recheck.
	Webhooks func() []admission.Webhook
	// CABundle returns the certificates, PEM, that the API server is to trust, as
	// they are now. An error means that they are not known yet: nothing is written
	// until they are. Empty without an error means that the field is somebody
	// else's (a CA injector), or that the system's roots do. It is asked often and
	// must be fast.
	CABundle func() ([]byte, error)

	// Conversions returns the custom resources that this application converts, as
	// they are now, like Webhooks. Nil means none, and that definitions of custom
	// resources are neither read nor written.
	//
	// Of a definition only spec.conversion is written, and none is created: a
	// definition that does not exist gets its stanza when it appears. The stanza of
	// one that is no longer among the conversions stays as it is: objects may be
	// stored in versions that only a webhook can convert.
	Conversions func() []Conversion
	// CRDs needs the rights of [ConversionPolicyRules], and is needed with
	// Conversions only.
	CRDs apiextensionsclient.CustomResourceDefinitionInterface
	// ConversionCABundle is CABundle for conversions; nil means CABundle. A server
	// can convert as soon as it has its certificate, before what else it stands on
	// is ready.
	ConversionCABundle func() ([]byte, error)

	// Leading tells whether this Keeper may write; nil means always. While it may
	// not, it watches, and [Keeper.Registered] tells whether the leader has written
	// what this Keeper would write. Call [Keeper.Notify] when the answer changes. It
	// must be fast.
	Leading func() bool

	// FieldManager is [DefaultFieldManager] if empty.
	FieldManager string
	// Recheck is how often the objects are applied even if nothing seems to have
	// changed, 10 minutes if zero; up to a fifth is added so that replicas do not
	// do it at once.
	Recheck time.Duration
	// Logger is slog.Default() if nil.
	Logger *slog.Logger
	// Events takes an event when somebody else changes again and again what is
	// ours; nil leaves them out. Events of cluster-scoped objects are in the
	// namespace default; see [EventPolicyRules].
	Events events.EventRecorder
	// Registry takes the metrics; nil leaves them out.
	Registry prometheus.Registerer
}

func (o *Options) complete() error {
	errs := []error{o.Config.Validate()}
	if o.Client == nil {
		errs = append(errs, errors.New("client is missing"))
	}
	if o.Webhooks == nil {
		errs = append(errs, errors.New("webhooks: the func that returns the definitions is missing"))
	}
	if o.CABundle == nil {
		errs = append(errs, errors.New("CA bundle: the func that returns it is missing"))
	}
	if o.Conversions != nil && o.CRDs == nil {
		errs = append(errs, errors.New("CRDs: the client that writes conversion stanzas is missing"))
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
