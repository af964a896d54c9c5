// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/author"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/conditions"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// Guard selects what happens to pods during an outage: a policy rejects pods that a
// PodDefault selects and admits all others (Backstop), or all pods are rejected (Fail). The
// default is Backstop if the failure policy is Fail and the API server has
// ValidatingAdmissionPolicy v1, and Fail otherwise.
type Guard string

// The guards.
const (
	GuardFail     Guard = "Fail"
	GuardBackstop Guard = "Backstop"
)

var guards = []string{string(GuardBackstop), string(GuardFail)}

// Validate reports a value that is none of them.
func (g Guard) Validate() error {
	if g == "" || slices.Contains(guards, string(g)) {
		return nil
	}
	return field.NotSupported(field.NewPath("guard"), string(g), guards)
}

// indexes tell whether what the policy reads is there. The controller that writes it is
// made after the webhooks.
type indexes struct {
	controller atomic.Pointer[backstop.Controller]
}

var errNoIndexes = errors.New("the controller " + backstop.Name + " does not run")

// Ready is [admission.Backstop.Ready].
func (x *indexes) Ready() error {
	if x == nil {
		return nil
	}
	if c := x.controller.Load(); c != nil {
		return c.Ready()
	}
	return errNoIndexes
}

// Omitted implements [status.Room].
func (x *indexes) Omitted(object *plan.Plan) []string {
	if c := x.controller.Load(); c != nil {
		return c.Omitted(object)
	}
	return nil
}

// HandleOmitted implements [status.Room]. All controllers are made before one leads.
func (x *indexes) HandleOmitted(changed func(types.NamespacedName)) (remove func()) {
	if c := x.controller.Load(); c != nil {
		return c.HandleOmitted(changed)
	}
	return func() {}
}

// guarded gives the webhook its backstop.
func guarded(w admission.Webhook, settings *PodDefaultSettings, from PodDefaultSources) admission.Webhook {
	w.Backstop = backstop.New(from.indexes.Ready)
	w.Backstop.Disabled = settings.Guard == GuardFail
	return w
}

// WithGuard returns the configuration with a guard, which it may not have chosen itself.
func (c *Config) WithGuard(guard Guard) *Config {
	out, settings := *c, *PodDefault(c)
	out.Settings, settings.Guard = maps.Clone(c.Settings), guard
	out.Settings[podDefaultName] = &settings
	return &out
}

// adjustPodDefault has the last word about the failure policies of the webhooks for PodDefaults.
func adjustPodDefault(c *Config, w *admission.Webhook) {
	switch w.Name {
	case poddefault.ExcludedName:
		w.FailurePolicy = admissionregistrationv1.Ignore // whatever the others use: see there
	case author.Name: // its policy follows from the rules it checks
		w.FailurePolicy = PodDefault(c).Authorize.FailurePolicy()
	case author.ExemptName:
		// Labels may take a namespace out of a selector, and back in.
		w.FailurePolicy, w.NamespaceSelector = admissionregistrationv1.Fail, nil
	}
	adjustGuard(c, w)
}

// adjustGuard disables the backstop of a webhook that fails open, unless the configuration
// asks for a backstop.
func adjustGuard(c *Config, w *admission.Webhook) {
	if w.Backstop == nil || PodDefault(c).Guard == GuardBackstop || w.FailurePolicy != admissionregistrationv1.Ignore {
		return
	}
	off := *w.Backstop
	off.Disabled = true
	w.Backstop = &off
}

// validateGuard reports settings that conflict with a backstop.
func validateGuard(c *Config) field.ErrorList {
	if PodDefault(c).Guard != GuardBackstop {
		return nil
	}
	var errs field.ErrorList
	if c.Registration.Mode == registration.ModeManifest {
		errs = append(errs, field.Forbidden(guardPath(c), "a backstop is not for the registration mode Manifest: static manifests hold no policy with a parameter"))
	}
	if !selects(c.Controllers, backstop.Name) {
		errs = append(errs, field.Forbidden(guardPath(c), "a backstop needs the controller "+backstop.Name+": add it to controllers"))
	}
	return errs
}

func guardPath(c *Config) *field.Path {
	i := slices.IndexFunc(c.Webhooks, func(w configv1alpha1.Webhook) bool { return w.Name == podDefaultName })
	return field.NewPath("webhooks").Index(i).Child("settings", "guard")
}

// startIndexes makes the controller that writes what the policy reads.
func startIndexes(b *liveBuiltin, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
	c, err := backstop.NewController(env.Client, backstop.Options{
		Watcher: podDefaultsOf(b), Leader: leader, Logger: env.Logger, Metrics: env.Metrics, Changed: env.Changed,
		Namespaces: func() (labels.Selector, error) { return guardedNamespaces(b) },
	})
	if err != nil {
		return nil, err
	}
	runningOf(b).indexes.controller.Store(c)
	return c.Run, nil
}

// guardedNamespaces selects the namespaces of the current PodDefault webhook.
func guardedNamespaces(b *liveBuiltin) (labels.Selector, error) {
	if PodDefault(b.config.now()).Guard == GuardFail { // no policy reads them
		return labels.Nothing(), nil
	}
	namespaces, _, err := askedOf(b)
	return namespaces, err
}

// askedOf returns the selectors of the current PodDefault webhook.
func askedOf(b *liveBuiltin) (namespaces, pods labels.Selector, err error) {
	state := b.state.Load()
	if state == nil {
		return labels.Nothing(), labels.Nothing(), nil
	}
	for _, w := range state.webhooks {
		if w.Name != poddefault.Name {
			continue
		}
		settings := b.config.start.AppRegistration()
		settings.Adjust = b.config.adjust
		applied, err := hosting.Apply(&settings, []admission.Webhook{w})
		if err != nil {
			return nil, nil, err
		}
		if namespaces, err = selectorOf(applied[0].NamespaceSelector); err != nil {
			return nil, nil, err
		}
		pods, err = selectorOf(applied[0].ObjectSelector)
		return namespaces, pods, err
	}
	return labels.Nothing(), labels.Nothing(), nil
}

// driftAsked returns for which pods the webhook is configured. Match conditions of its own are not among them: they are
// about annotations that drift knows.
func driftAsked(b *liveBuiltin) func() (drift.Asked, error) {
	var latest conditions.Latest
	return func() (out drift.Asked, err error) {
		out.Namespaces, out.Pods, err = askedOf(b)
		if entry := b.config.now().entry(b.Name); entry != nil {
			if set := latest.Of(entry.MatchConditions); set != nil {
				out.Excludes = set
			}
		}
		return out, err
	}
}
