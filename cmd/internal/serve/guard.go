// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/conditions"
	"github.com/sallyport-io/sallyport/internal/hosting"
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
func (x *indexes) HandleOmitted(changed func([]types.NamespacedName)) (remove func()) {
	if c := x.controller.Load(); c != nil {
		return c.HandleOmitted(changed)
	}
	return func() {}
}

// guarded gives the webhook its backstop.
func guarded(w admission.Webhook, settings *PodDefaultSettings, from Sources) admission.Webhook {
	w.Backstop = backstop.New(from.indexes.Ready)
	w.Backstop.Disabled = settings.Guard == GuardFail
	if watcher, ok := from.PodDefaults.(*source.Watcher); ok && !w.Backstop.Disabled {
		w.Handler = watcher.TellGone(w.Handler)
	}
	return w
}

// adjustGuard disables the backstop of a webhook that fails open, unless the configuration
// asks for a backstop.
func (c *Config) adjustGuard(w *admission.Webhook) {
	if w.Backstop == nil || c.Settings.PodDefault.Guard == GuardBackstop || w.FailurePolicy != admissionregistrationv1.Ignore {
		return
	}
	off := *w.Backstop
	off.Disabled = true
	w.Backstop = &off
}

// startIndexes makes the controller that writes what the policy reads.
func (l *liveConfig) startIndexes(env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
	c, err := backstop.NewController(env.Client, backstop.Options{
		Watcher: l.podDefaults(), Leader: leader, Logger: env.Logger, Metrics: env.Metrics, Changed: env.Changed,
		Namespaces: func() (labels.Selector, error) { return l.guardedNamespaces(l.builtin("poddefault")) },
	})
	if err != nil {
		return nil, err
	}
	l.indexes.controller.Store(c)
	return c.Run, nil
}

// guardedNamespaces selects the namespaces of the current PodDefault webhook.
func (l *liveConfig) guardedNamespaces(b *liveBuiltin) (labels.Selector, error) {
	if l.now().Settings.PodDefault.Guard == GuardFail { // no policy reads them
		return labels.Nothing(), nil
	}
	namespaces, _, err := l.asked(b)
	return namespaces, err
}

// asked returns the selectors of the current PodDefault webhook.
func (l *liveConfig) asked(b *liveBuiltin) (namespaces, pods labels.Selector, err error) {
	state := b.state.Load()
	if state == nil {
		return labels.Nothing(), labels.Nothing(), nil
	}
	for _, w := range state.webhooks {
		if w.Name != poddefault.Name {
			continue
		}
		settings := l.start.AppRegistration()
		settings.Adjust = l.adjust
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
func (l *liveConfig) driftAsked() func() (drift.Asked, error) {
	var latest conditions.Latest
	return func() (out drift.Asked, err error) {
		out.Namespaces, out.Pods, err = l.asked(l.builtin("poddefault"))
		if entry := l.now().entry("poddefault"); entry != nil {
			if set := latest.Of(entry.MatchConditions); set != nil {
				out.Excludes = set
			}
		}
		return out, err
	}
}

// selectorOf returns the selector of a webhook; an absent one selects everything.
func selectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}
