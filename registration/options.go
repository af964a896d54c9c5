// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

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

	// Leading tells whether this Keeper may write; nil means always. While it may
	// not, it watches. Call [Keeper.Notify] when the answer changes. It must be fast.
	Leading func() bool

	// FieldManager is [DefaultFieldManager] if empty.
	FieldManager string
	// Recheck is how often the objects are applied even if nothing seems to have
	// changed, 10 minutes if zero; up to a fifth is added so that replicas do not
	// do it at once.
	Recheck time.Duration
	// Logger is slog.Default() if nil.
	Logger *slog.Logger
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
	if o.Recheck < 0 {
		errs = append(errs, errors.New("recheck must not be negative"))
	}
	if o.FieldManager == "" {
		o.FieldManager = DefaultFieldManager
	}
	if o.Recheck == 0 {
		o.Recheck = 10 * time.Minute
	}
	if o.Leading == nil {
		o.Leading = func() bool { return true }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return errors.Join(errs...)
}
