// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// backstopSettle is how long API servers are given to act on a policy that is new, before
// the webhook fails open: they read policies once a second, and compile them.
const backstopSettle = 5 * time.Second

// backstopState is how far the backstop of a webhook is. On the way up what the policy reads
// comes first, then policy and binding, then the webhook fails open. On the way down it is
// the reverse.
type backstopState string

const (
	// No definition has a backstop, or it is disabled: there is to be no policy.
	backstopOff backstopState = "Off"
	// The definitions are wrong: there is to be no policy.
	backstopInvalid backstopState = "Invalid"
	// Policy and binding are not observed yet. Nothing is written: what is there may have to
	// go first.
	backstopUnobserved backstopState = "Unobserved"
	// The policy reads something else, as one of an earlier version does. It goes first: while
	// there is none the webhook fails closed, and no pod passes it.
	backstopReplacing backstopState = "Replacing"
	// What the policy reads is not there yet.
	backstopNotReady backstopState = "NotReady"
	// Policy or binding is missing, and is written.
	backstopMissing backstopState = "Missing"
	// Policy or binding is not as desired, and is put right. It counts as before until then.
	backstopDrifted backstopState = "Drifted"
	// API servers are about to act on policy and binding.
	backstopSettling backstopState = "Settling"
	// The policy stands in: the webhook fails open.
	backstopInForce backstopState = "InForce"
)

// backstop is that of a [Keeper].
type backstop struct {
	state           backstopState
	desired         policies
	since           time.Time // when what is registered was made; zero if it is not as desired
	reported        string    // what the log said last that it waits for
	wanted, inForce atomic.Bool
}

// watchBackstop watches what a backstop is made of, from when a definition has one.
func (k *Keeper) watchBackstop(ctx context.Context) error {
	w, err := backstopOf(k.options.Webhooks())
	if err != nil || w == nil || k.find(policyKind) != nil {
		return err
	}
	return errors.Join(k.watch(ctx, policyObject(k.options, k.limiter.Wait), k.policies),
		k.watch(ctx, bindingObject(k.options, k.limiter.Wait), k.policies))
}

// configurationTarget is the target of the webhook configurations.
func (k *Keeper) configurationTarget(caBundle []byte) target {
	webhooks, again := k.staging.next(time.Now(), k.options.Webhooks())
	webhooks, settled := k.advanceBackstop(webhooks)
	configurations, err := Build(k.options.Config, webhooks, caBundle)
	t := result{again: again}
	t.add(result{again: settled})
	return target{desired: desired{Configurations: configurations}, until: t.again, err: err}
}

// policyTarget is the target of the policy and its binding. If the configurations could not
// be written, the webhook may still fail open: then nothing is taken away.
func (k *Keeper) policyTarget([]byte) target {
	b := &k.backstop
	return target{
		desired: desired{policies: b.desired},
		hold:    k.find(policyKind) == nil || b.state == backstopUnobserved || b.desired.policy == nil && k.configurations.lastErr != nil,
	}
}

// advanceBackstop finds out how far the backstop is, and returns the definitions as they
// are to be registered now: failing open only while the policy is in force. Settled is when
// that changes by itself; zero for never.
func (k *Keeper) advanceBackstop(webhooks []admission.Webhook) (registered []admission.Webhook, settled time.Time) {
	b := &k.backstop
	w, err := backstopOf(webhooks)
	state, built, waiting := backstopInvalid, policies{}, err
	if err == nil {
		state, built, waiting = k.observeBackstop(w)
	}
	now := time.Now()
	open := state == backstopDrifted && !b.since.IsZero() && !now.Before(b.since.Add(backstopSettle))
	switch state {
	case backstopReplacing, backstopNotReady, backstopMissing:
		b.since = time.Time{}
	case backstopInForce:
		if b.since.IsZero() {
			b.since = k.newestPolicy()
		}
		if open = !now.Before(b.since.Add(backstopSettle)); !open {
			state, settled, waiting = backstopSettling, b.since.Add(backstopSettle), errors.New("the backstop is about to take force")
		}
	}
	b.state, b.desired = state, built
	k.reportBackstop(waiting)
	if open {
		webhooks = failOpen(webhooks)
	}
	w, _ = backstopOf(webhooks)
	b.wanted.Store(w != nil && !w.Backstop.Disabled)
	b.inForce.Store(b.wanted.Load() && w.FailurePolicy == admissionregistrationv1.Ignore && built.policy != nil)
	return webhooks, settled
}

// observeBackstop says of a webhook, nil if there is none, how far its backstop is, what
// policy and binding are to be, and what is waited for. It does not know of settling.
func (k *Keeper) observeBackstop(w *admission.Webhook) (state backstopState, to policies, waiting error) {
	policy, binding := k.find(policyKind), k.find(bindingKind)
	if w == nil || w.Backstop.Disabled || policy == nil {
		return backstopOff, policies{}, nil
	}
	built, err := buildPolicies(k.options.Config, []admission.Webhook{k.asRegistered(*w)})
	if err != nil {
		return backstopInvalid, policies{}, err
	}
	observedPolicy, policySynced := policy.observed()
	observedBinding, bindingSynced := binding.observed()
	if !policySynced || !bindingSynced {
		return backstopUnobserved, built, fmt.Errorf("the backstop waits: %s and %s are not seen yet (is this Kubernetes 1.30 or later, and may this server list them?)", policyKind, bindingKind)
	}
	if kind := paramKind(observedPolicy); kind != nil && *kind != w.Backstop.Param {
		return backstopReplacing, policies{}, fmt.Errorf("the backstop waits: the policy of an earlier version, which reads a %s, goes first", kind.Kind)
	}
	if observedBinding == nil || observedPolicy == nil {
		if ready := w.Backstop.Ready; ready != nil {
			if err := ready(); err != nil {
				return backstopNotReady, policies{}, fmt.Errorf("the backstop waits: %w", err)
			}
		}
		return backstopMissing, built, errors.New("the backstop is not registered yet")
	}
	all := desired{policies: built}
	if err := errors.Join(policy.drift(all, observedPolicy), binding.drift(all, observedBinding)); err != nil {
		return backstopDrifted, built, err
	}
	return backstopInForce, built, nil
}

// reportBackstop logs once what the backstop waits for.
func (k *Keeper) reportBackstop(waiting error) {
	text := ""
	if waiting != nil {
		text = waiting.Error()
	}
	if text != k.backstop.reported && text != "" {
		k.options.Logger.Info("no policy stands in for the webhook, which fails closed", "why", waiting)
	}
	k.backstop.reported = text
}

// paramKind is that of a policy as it is; nil if there is no policy, or it reads nothing.
func paramKind(observed metav1.Object) *admissionregistrationv1.ParamKind {
	policy, ok := observed.(*admissionregistrationv1.ValidatingAdmissionPolicy)
	if !ok {
		return nil
	}
	return policy.Spec.ParamKind
}

// newestPolicy is when the younger of policy and binding was made, by the API server's clock, and
// never later than now.
func (k *Keeper) newestPolicy() time.Time {
	var at time.Time
	for _, kind := range []string{policyKind, bindingKind} {
		if observed, _ := k.find(kind).observed(); observed != nil && observed.GetCreationTimestamp().After(at) {
			at = observed.GetCreationTimestamp().Time
		}
	}
	if now := time.Now(); at.After(now) { // clocks differ
		return now
	}
	return at
}

// asRegistered is the webhook with the selectors that it has in the cluster, if they
// leave out more than its own: for what the API server does not ask the webhook about,
// the policy must not stand in.
func (k *Keeper) asRegistered(w admission.Webhook) admission.Webhook {
	configuration := k.find(mutatingKind)
	if configuration == nil {
		return w
	}
	observed, _ := configuration.observed()
	object, ok := observed.(*admissionregistrationv1.MutatingWebhookConfiguration)
	if !ok {
		return w
	}
	for i := range object.Webhooks {
		there := &object.Webhooks[i]
		if there.Name != w.Name {
			continue
		}
		if implies(there.NamespaceSelector, w.NamespaceSelector) {
			w.NamespaceSelector = there.NamespaceSelector
		}
		if implies(there.ObjectSelector, w.ObjectSelector) {
			w.ObjectSelector = there.ObjectSelector
		}
	}
	return w
}
