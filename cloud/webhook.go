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

// Webhook is a webhook about the cloud: what the API server must know of it, and how its
// handler is made once there is a cloud.
type Webhook struct {
	// Name is by which --webhooks enables it: a DNS label. Aliases do so too.
	Name    string
	Aliases []string
	// Definition has no handler. Its failure policy is Ignore if it is not set: a cloud
	// that is away must not bring the cluster to a halt. The timeout is 10 s.
	Definition admission.Webhook
	// New makes the handler. It is called once, on every replica. An error ends the
	// cloud controller manager.
	New func(Dependencies) (admission.Handler, error)
	// NeedsInitializedCloud: New and the handler want a cloud whose Initialize has been
	// called. Until then calls are answered with 503, which makes the API server call
	// again, and /readyz fails. Not all clouds need it, nor do all webhooks.
	NeedsInitializedCloud bool
	// DisabledByDefault: * does not enable it, its name does.
	DisabledByDefault bool

	problem error // of who made it
	// labels are those that a controller gives volumes that were missed; nil for none.
	labels *PersistentVolumeLabelSettings
}

// Dependencies are what handlers stand on.
type Dependencies struct {
	// Cloud is the webhooks' own: the cloud initializer is called a second time for it.
	// So it does not matter to it which replica leads, nor when controllers start.
	Cloud  cloudprovider.Interface
	Client kubernetes.Interface
	// Informers are the webhooks' own too. Those that New asks for are started when it
	// has returned, and the handler is called when they have synced.
	Informers informers.SharedInformerFactory
	Recorder  record.EventRecorder
	Logger    *slog.Logger
	// Metrics are shown beside those of the webhooks, and by the cloud controller manager.
	Metrics prometheus.Registerer
}

// Option changes a webhook that [Registry.Register] makes.
type Option func(*Webhook)

// WithDefinition changes the definition: path, type, operations, match conditions,
// failure policy.
func WithDefinition(options ...admission.WebhookOption) Option {
	return func(w *Webhook) {
		for _, option := range options {
			option(&w.Definition)
		}
	}
}

// WithAliases adds names by which --webhooks enables the webhook.
func WithAliases(aliases ...string) Option {
	return func(w *Webhook) { w.Aliases = append(w.Aliases, aliases...) }
}

// WithInitializedCloud sets NeedsInitializedCloud.
func WithInitializedCloud() Option { return func(w *Webhook) { w.NeedsInitializedCloud = true } }

// WithDisabledByDefault sets DisabledByDefault.
func WithDisabledByDefault() Option { return func(w *Webhook) { w.DisabledByDefault = true } }

// rulesFor are for creations and updates of kinds. Their resources are guessed from the
// names, as is right for the kinds of Kubernetes.
func rulesFor(kinds []schema.GroupVersionKind) []admissionregistrationv1.RuleWithOperations {
	var rules []admissionregistrationv1.RuleWithOperations
	for _, kind := range kinds {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		rules = append(rules, admission.Rules(resource)...)
	}
	return rules
}

// defaulted fills in what is not said.
func (w Webhook) defaulted() Webhook {
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
		errs = append(errs, fmt.Errorf("webhook %q: New is missing, which makes the handler", w.Name))
	}
	if err := w.Definition.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
