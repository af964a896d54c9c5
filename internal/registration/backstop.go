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
	"github.com/sallyport-io/sallyport/internal/registration/ownership"
)

// backstopSettle is how long to wait for API servers to enforce a new policy before the
// webhook fails open: they reload policies once a second, and compile them.
const backstopSettle = 5 * time.Second

// backstopState is the progress of a webhook's backstop. To enable it, the policy's
// parameters are created first, then policy and binding, and then the webhook fails open.
// To disable it, the order is reversed.
type backstopState string

const (
	// No definition has a backstop, or it is disabled: no policy is desired.
	backstopOff backstopState = "Off"
	// The definitions are invalid: no policy is desired.
	backstopInvalid backstopState = "Invalid"
	// Policy and binding are not observed yet. Nothing is written, since existing ones may
	// have to be removed first.
	backstopUnobserved backstopState = "Unobserved"
	// The policy reads another kind of parameter, of which no object may exist. It is removed
	// first: without a policy the webhook fails closed, and no pod passes it.
	backstopReplacing backstopState = "Replacing"
	// The policy's parameters do not exist yet.
	backstopNotReady backstopState = "NotReady"
	// Policy or binding is missing, and is being written.
	backstopMissing backstopState = "Missing"
	// Policy or binding has drifted, and is being repaired. Until then it still counts.
	backstopDrifted backstopState = "Drifted"
	// API servers are about to enforce policy and binding.
	backstopSettling backstopState = "Settling"
	// The policy is in force: the webhook fails open.
	backstopInForce backstopState = "InForce"
)

// backstop is the backstop of a [Controller].
type backstop struct {
	state           backstopState
	desired         policies
	since           time.Time // when policy and binding were created; zero if they are not as desired
	reported        string    // the last logged reason for waiting
	wanted, inForce atomic.Bool
}

// watchBackstop watches the objects of a backstop once a definition has one.
func (k *Controller) watchBackstop(ctx context.Context) error {
	w, err := backstopOf(k.options.Webhooks())
	if err != nil || w == nil || k.find(policyKind) != nil {
		return err
	}
	return errors.Join(k.watch(ctx, policyObject(k.options, k.limiter.Wait), k.policies),
		k.watch(ctx, bindingObject(k.options, k.limiter.Wait), k.policies))
}

// configurationTarget is the target of the webhook configurations.
func (k *Controller) configurationTarget(caBundle []byte) target {
	webhooks, again := k.staging.Next(time.Now(), k.options.Webhooks())
	webhooks, inForceAt := k.advanceBackstop(webhooks)
	configurations, err := Build(k.options.Config, webhooks, caBundle)
	configurations = withRecords(configurations, webhooks)
	t := result{again: again}
	t.add(result{again: inForceAt})
	return target{desired: desired{Configurations: configurations}, until: t.again, err: err}
}

// policyTarget is the target of the policy and its binding. If the configurations could not
// be written, the webhook may still fail open, so nothing is removed.
func (k *Controller) policyTarget([]byte) target {
	b := &k.backstop
	return target{
		desired: desired{policies: b.desired},
		hold:    k.find(policyKind) == nil || b.state == backstopUnobserved || b.desired.policy == nil && k.configurations.lastErr != nil,
	}
}

// advanceBackstop determines the state of the backstop, and returns the definitions to
// register now: the webhook fails open only while the policy is in force. InForceAt is when
// that changes by itself, or zero for never.
func (k *Controller) advanceBackstop(webhooks []admission.Webhook) (registered []admission.Webhook, inForceAt time.Time) {
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
			state, inForceAt, waiting = backstopSettling, b.since.Add(backstopSettle), errors.New("the backstop is about to take effect")
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
	return webhooks, inForceAt
}

// observeBackstop returns the state of a webhook's backstop, the desired policy and
// binding, and what it waits for. The webhook may be nil. It does not handle settling.
func (k *Controller) observeBackstop(w *admission.Webhook) (state backstopState, to policies, waiting error) {
	policy, binding := k.find(policyKind), k.find(bindingKind)
	if w == nil || w.Backstop.Disabled || policy == nil {
		return backstopOff, policies{}, nil
	}
	registered := k.asRegistered(*w)
	built, err := buildPolicies(k.options.Config, []admission.Webhook{registered})
	if err != nil {
		return backstopInvalid, policies{}, err
	}
	built.record(k.options.Config.Name, registered.Defaulted())
	observedPolicy, policySynced := policy.observed()
	observedBinding, bindingSynced := binding.observed()
	if !policySynced || !bindingSynced {
		return backstopUnobserved, built, fmt.Errorf("the backstop is pending: %s and %s are not observed yet (is this Kubernetes 1.30 or later, and may this server list them?)", policyKind, bindingKind)
	}
	if kind := paramKind(observedPolicy); kind != nil && *kind != w.Backstop.Param {
		return backstopReplacing, policies{}, fmt.Errorf("the backstop is not ready: its policy reads objects of kind %s and is removed first", kind.Kind)
	}
	if observedBinding == nil || observedPolicy == nil {
		if ready := w.Backstop.Ready; ready != nil {
			if err := ready(); err != nil {
				return backstopNotReady, policies{}, fmt.Errorf("the backstop is pending: %w", err)
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

// reportBackstop logs each reason for waiting once.
func (k *Controller) reportBackstop(waiting error) {
	text := ""
	if waiting != nil {
		text = waiting.Error()
	}
	if text != k.backstop.reported && text != "" {
		k.options.Logger.Info("the backstop is not in force, the webhook fails closed", "why", waiting)
	}
	k.backstop.reported = text
}

// paramKind is the paramKind of the observed policy, or nil if there is none.
func paramKind(observed metav1.Object) *admissionregistrationv1.ParamKind {
	policy, ok := observed.(*admissionregistrationv1.ValidatingAdmissionPolicy)
	if !ok {
		return nil
	}
	return policy.Spec.ParamKind
}

// newestPolicy is the creation time of the newer of policy and binding by the API server's
// clock, but not later than now.
func (k *Controller) newestPolicy() time.Time {
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

// asRegistered is the webhook with its namespace selector in the cluster, if that excludes
// more than its own: whoever exempts a whole namespace, as in an emergency, exempts it from
// the policy too. The policy does not follow other foreign terms: it rejects the pods for
// which the API server does not call the webhook because of them.
func (k *Controller) asRegistered(w admission.Webhook) admission.Webhook {
	configuration := k.find(mutatingKind)
	if configuration == nil || k.options.RefuseForeignTerms {
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
		if ownership.Implies(there.NamespaceSelector, w.NamespaceSelector) {
			w.NamespaceSelector = there.NamespaceSelector
		}
	}
	return w
}
