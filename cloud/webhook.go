// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/sallyport-io/sallyport/admission"
)

// Webhook is a webhook that uses the cloud: its definition, and the constructor of its
// handler.
type Webhook struct {
	// Name and Aliases enable it in --webhooks. Name is a DNS label.
	Name    string
	Aliases []string
	// Definition has no handler. Its failure policy defaults to Ignore, so that an
	// unavailable cloud does not block the cluster. Its timeout defaults to 10 s.
	Definition admission.Webhook
	// New creates the handler. It is called once on every replica. An error ends the cloud
	// controller manager.
	New func(Dependencies) (admission.Handler, error)
	// NeedsInitializedCloud defers New and the handler until Initialize of the cloud has
	// been called. Until then calls get 503, which makes the API server retry, and /readyz
	// fails. Not all clouds and webhooks need it.
	NeedsInitializedCloud bool
	// DisabledByDefault requires --webhooks to enable it by name: * does not.
	DisabledByDefault bool

	problem  error // of its constructor
	upstream bool  // of upstream's builder: its definition has only name and path
	// labels are the settings of the controller that labels missed volumes; nil for none.
	labels *PersistentVolumeLabelSettings
}

// Dependencies are the inputs of [Webhook].New.
type Dependencies struct {
	// Cloud is separate from that of the controllers: the cloud initializer is called a
	// second time. So it is independent of leader election and of the start of controllers.
	Cloud  cloudprovider.Interface
	Client kubernetes.Interface
	// Informers are separate too. The informers that New requests are started after it
	// returns, and the handler is called once they have synced.
	Informers informers.SharedInformerFactory
	Recorder  record.EventRecorder
	Logger    *slog.Logger
	// Metrics are exposed with those of the webhooks, and by the cloud controller manager.
	Metrics prometheus.Registerer
}

// Option modifies a webhook of [Registry.Register].
type Option func(*Webhook)

// WithDefinition modifies the definition: path, type, operations, match conditions, failure
// policy.
func WithDefinition(options ...admission.WebhookOption) Option {
	return func(w *Webhook) {
		for _, option := range options {
			option(&w.Definition)
		}
	}
}

// WithAliases adds aliases for --webhooks.
func WithAliases(aliases ...string) Option {
	return func(w *Webhook) { w.Aliases = append(w.Aliases, aliases...) }
}

// WithInitializedCloud sets NeedsInitializedCloud.
func WithInitializedCloud() Option { return func(w *Webhook) { w.NeedsInitializedCloud = true } }

// WithDisabledByDefault sets DisabledByDefault.
func WithDisabledByDefault() Option { return func(w *Webhook) { w.DisabledByDefault = true } }

// rulesFor returns rules for creations and updates of kinds. It guesses the resources from
// the names of the kinds, which is correct for Kubernetes' own.
func rulesFor(kinds []schema.GroupVersionKind) []admissionregistrationv1.RuleWithOperations {
	var rules []admissionregistrationv1.RuleWithOperations
	for _, kind := range kinds {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		rules = append(rules, admission.Rules(resource)...)
	}
	return rules
}

// defaulted applies the defaults.
func (w Webhook) defaulted() Webhook {
	if w.upstream {
		return w
	}
	w.Definition.FailurePolicy = cmp.Or(w.Definition.FailurePolicy, admissionregistrationv1.Ignore)
	w.Definition.TimeoutSeconds = cmp.Or(w.Definition.TimeoutSeconds, 10)
	w.Definition.Handler = &slot{}
	w.Aliases = slices.Clone(w.Aliases)
	return w
}

// validate reports all problems. The webhook is defaulted.
func (w *Webhook) validate() error {
	if w.problem != nil {
		return w.problem
	}
	var errs []error
	for _, name := range append([]string{w.Name}, w.Aliases...) {
		for _, problem := range validation.IsDNS1123Label(name) {
			errs = append(errs, fmt.Errorf("webhook %q: name %q: %s", w.Name, name, problem))
		}
	}
	if w.New == nil {
		errs = append(errs, fmt.Errorf("webhook %q: New is required, to create the handler", w.Name))
	}
	if err := w.Definition.Problems(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
