// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/webhooks/poddefault/backstop"
)

// guard says what becomes of pods while no server answers. It is empty if nobody chose:
// then it is Backstop wherever that is possible, and Fail elsewhere.
type guard string

const (
	guardFail     guard = "Fail"
	guardBackstop guard = "Backstop"
)

var guards = []string{string(guardBackstop), string(guardFail)}

// Validate is for both the flag and the field of a file.
func (g guard) Validate() error {
	if g == "" {
		return nil
	}
	return cli.Choice("guard", string(g), guards)
}

func addGuardFlag(cmd *cobra.Command, settings *podDefaultSettings) {
	cmd.Flags().StringVar((*string)(&settings.Guard), "guard", string(settings.Guard),
		"`what` becomes of pods while no server answers: a policy refuses those that a PodDefault selects and admits all others (Backstop), "+
			"or all are refused (Fail); if it is not given, Backstop where the API server has ValidatingAdmissionPolicy v1, if the failure policy is Fail")
	cli.CompleteChoices(cmd, "guard", guards)
}

// validateGuard reports what does not go together with a backstop.
func validateGuard(settings *podDefaultSettings, mode registration.Mode, webhooks builtinSelection, controllers controllerSelection) error {
	if err := settings.Guard.Validate(); err != nil {
		return err
	}
	var errs []error
	if settings.Guard == guardBackstop && webhooks.has("poddefault") {
		if mode == registration.ModeManifest {
			errs = append(errs, errors.New("--guard Backstop is not for --registration manifest: static manifests hold no policy with a parameter"))
		}
		if !controllers.has(backstop.Name) {
			errs = append(errs, errors.New("--guard Backstop needs the controller "+backstop.Name+": add it to --controllers"))
		}
	}
	return errors.Join(errs...)
}

// indexes tell whether what the policy reads is there. The controller that writes it is
// made after the webhooks.
type indexes struct {
	ready atomic.Pointer[func() error]
}

var errNoIndexes = errors.New("the controller " + backstop.Name + " does not run")

// Ready is [admission.Backstop.Ready].
func (x *indexes) Ready() error {
	if x == nil {
		return nil
	}
	if ready := x.ready.Load(); ready != nil {
		return (*ready)()
	}
	return errNoIndexes
}

// guarded gives the webhook its backstop.
func guarded(w admission.Webhook, settings *podDefaultSettings, from builtinSources) admission.Webhook {
	w.Backstop = backstop.New(from.indexes.Ready)
	w.Backstop.Disabled = settings.Guard == guardFail
	if watcher, ok := from.podDefaults.(*poddefault.Watcher); ok && !w.Backstop.Disabled {
		w.Handler = watcher.TellGone(w.Handler)
	}
	return w
}

// adjustGuard leaves a webhook that shall fail open as it is, unless a backstop was asked
// for.
func (s *builtinSettings) adjustGuard(w *admission.Webhook) {
	if w.Backstop == nil || s.podDefault.Guard == guardBackstop || w.FailurePolicy != admissionregistrationv1.Ignore {
		return
	}
	off := *w.Backstop
	off.Disabled = true
	w.Backstop = &off
}

// startIndexes makes the controller that writes what the policy reads.
func (l *liveConfig) startIndexes(env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
	var injects *liveBuiltin
	for _, b := range l.builtins {
		if b.name == "poddefault" {
			injects = b
		}
	}
	c, err := backstop.NewController(env.Client, backstop.Options{
		Leader: leader, Logger: env.Logger, Metrics: env.Metrics, Changed: env.Changed,
		Namespaces: func() (labels.Selector, error) { return l.options.guardedNamespaces(injects) },
	})
	if err != nil {
		return nil, err
	}
	ready := c.Ready
	l.indexes.ready.Store(&ready)
	return c.Run, nil
}

// settingsNow are those that count now.
func settingsNow(o *serveOptions) *podDefaultSettings {
	if now := o.live.settings.Load(); now != nil {
		return &now.podDefault
	}
	return &o.builtin.podDefault
}

// guardedNamespaces are those for which the PodDefault webhook is, as it is now.
func (o *serveOptions) guardedNamespaces(b *liveBuiltin) (labels.Selector, error) {
	state := b.state.Load()
	if state == nil || settingsNow(o).Guard == guardFail { // nobody would read them
		return labels.Nothing(), nil
	}
	for _, w := range state.webhooks {
		if w.Name != poddefault.Name {
			continue
		}
		applied, err := o.settings.Registration.Apply([]admission.Webhook{w})
		if err != nil {
			return nil, err
		}
		if applied[0].NamespaceSelector == nil {
			return labels.Everything(), nil
		}
		return metav1.LabelSelectorAsSelector(applied[0].NamespaceSelector)
	}
	return labels.Nothing(), nil
}
