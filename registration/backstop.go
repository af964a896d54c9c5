// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/admission"
)

const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"
)

// backstopSettle is how long API servers are given to act on a policy that is new, before
// the webhook fails open: they read policies once a second, and compile them.
const backstopSettle = 5 * time.Second

// BackstopOf returns the one webhook that has a backstop, nil if none has. A second one
// is a mistake: the policy has the name of the configurations.
func BackstopOf(webhooks []admission.Webhook) (*admission.Webhook, error) {
	var found *admission.Webhook
	for i := range webhooks {
		if webhooks[i].Backstop == nil {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("webhooks %q and %q both have a backstop: one of an application can have one", found.Name, webhooks[i].Name)
		}
		found = &webhooks[i]
	}
	return found, nil
}

// Policies are the objects of a backstop; nil if there is none.
type Policies struct {
	Policy  *admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration
	Binding *admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration
}

// BuildPolicies derives the policy and its binding from the one definition with a
// backstop that is not disabled. Both have the webhook's selectors.
func BuildPolicies(c Config, webhooks []admission.Webhook) (Policies, error) {
	errs := []error{c.Validate()}
	w, err := BackstopOf(webhooks)
	errs = append(errs, err)
	if w != nil {
		errs = append(errs, w.Validate())
	}
	if err := errors.Join(errs...); err != nil {
		return Policies{}, fmt.Errorf("policy cannot be built: %w", err)
	}
	if w == nil || w.Backstop.Disabled {
		return Policies{}, nil
	}
	return Policies{Policy: c.policy(w.Defaulted()), Binding: c.binding(w.Defaulted())}, nil
}

func (c Config) policy(w admission.Webhook) *admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration {
	b := w.Backstop
	spec := admissionregistrationac.ValidatingAdmissionPolicySpec().
		WithParamKind(admissionregistrationac.ParamKind().WithAPIVersion(b.Param.APIVersion).WithKind(b.Param.Kind)).
		WithMatchConstraints(matchResources(w)).
		WithFailurePolicy(admissionregistrationv1.Fail).
		WithMatchConditions(matchConditions(b.MatchConditions)...)
	for _, v := range b.Variables {
		spec.WithVariables(admissionregistrationac.Variable().WithName(v.Name).WithExpression(v.Expression))
	}
	for _, v := range b.Validations {
		validation := admissionregistrationac.Validation().WithExpression(v.Expression)
		if v.Message != "" {
			validation.WithMessage(v.Message)
		}
		if v.MessageExpression != "" {
			validation.WithMessageExpression(v.MessageExpression)
		}
		if v.Reason != nil {
			validation.WithReason(*v.Reason)
		}
		spec.WithValidations(validation)
	}
	return admissionregistrationac.ValidatingAdmissionPolicy(c.Name).WithLabels(c.labels()).WithAnnotations(c.Annotations).
		WithOwnerReferences(c.owners()...).WithSpec(spec)
}

// binding finds the parameter by name in the namespace of the request, which costs the
// same whatever else is there. One that is missing refuses nothing: a namespace is older
// than what is written for it.
func (c Config) binding(w admission.Webhook) *admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration {
	resources := admissionregistrationac.MatchResources().WithMatchPolicy(w.MatchPolicy)
	resources.NamespaceSelector = selector(w.NamespaceSelector)
	resources.ObjectSelector = selector(w.ObjectSelector)
	return admissionregistrationac.ValidatingAdmissionPolicyBinding(c.Name).WithLabels(c.labels()).WithAnnotations(c.Annotations).
		WithOwnerReferences(c.owners()...).
		WithSpec(admissionregistrationac.ValidatingAdmissionPolicyBindingSpec().
			WithPolicyName(c.Name).
			WithParamRef(admissionregistrationac.ParamRef().WithName(w.Backstop.ParamName).WithParameterNotFoundAction(admissionregistrationv1.AllowAction)).
			WithMatchResources(resources).
			WithValidationActions(admissionregistrationv1.Deny))
}

func matchResources(w admission.Webhook) *admissionregistrationac.MatchResourcesApplyConfiguration {
	out := admissionregistrationac.MatchResources().WithMatchPolicy(w.MatchPolicy)
	for _, r := range rules(w.Rules) {
		named := admissionregistrationac.NamedRuleWithOperations().
			WithOperations(r.Operations...).WithAPIGroups(r.APIGroups...).WithAPIVersions(r.APIVersions...).WithResources(r.Resources...)
		named.Scope = r.Scope
		out.WithResourceRules(named)
	}
	out.NamespaceSelector = selector(w.NamespaceSelector)
	out.ObjectSelector = selector(w.ObjectSelector)
	return out
}

// failOpen returns the definitions with the failure policy Ignore for the one with a
// backstop.
func failOpen(webhooks []admission.Webhook) []admission.Webhook {
	out := slices.Clone(webhooks)
	for i := range out {
		if out[i].Backstop != nil {
			out[i].FailurePolicy = admissionregistrationv1.Ignore
		}
	}
	return out
}

// notLater is at, or now if that is earlier: clocks differ.
func notLater(at time.Time) time.Time {
	if now := time.Now(); at.After(now) {
		return now
	}
	return at
}

// backstop is how far the backstop of a [Keeper] is.
type backstop struct {
	since           time.Time // when what is registered was made; zero if it is not as it should be
	told            string    // what was waited for when the log said so the last time
	wanted, inForce atomic.Bool
}

// watchBackstop watches what a backstop is made of, from when a definition has one.
func (k *Keeper) watchBackstop(ctx context.Context, watches *sync.WaitGroup, webhooks []admission.Webhook) error {
	w, err := BackstopOf(webhooks)
	if err != nil || w == nil {
		return err
	}
	var errs []error
	if k.find(policyKind) == nil {
		errs = append(errs, k.watch(ctx, watches, policyObject(k.options, k.limiter.Wait), &k.policies),
			k.watch(ctx, watches, bindingObject(k.options, k.limiter.Wait), &k.policies))
	}
	return errors.Join(errs...)
}

// errUnseen is what is waited for before anything of a backstop is written: what is there
// may have to go first.
var errUnseen = fmt.Errorf("the backstop waits: %s and %s are not seen yet (is this Kubernetes 1.30 or later, and may this server list them?)", policyKind, bindingKind)

// passBackstop makes the policy and its binding what they should be, and says what they
// wait for. If the configurations could not be written, the webhook may still fail open:
// then nothing is taken away.
func (k *Keeper) passBackstop(ctx context.Context, full bool, policies Policies, waiting, failed error) result {
	told := ""
	if waiting != nil {
		told = waiting.Error()
	}
	if told != k.backstop.told && told != "" {
		k.options.Logger.Info("no policy stands in for the webhook, which fails closed", "why", waiting)
	}
	k.backstop.told = told
	if k.find(policyKind) == nil || errors.Is(waiting, errUnseen) || policies.Policy == nil && failed != nil {
		return result{}
	}
	return k.passHalf(ctx, &k.policies, full, func([]byte) (wanted, error) { return wantedOf(policies), nil })
}

// backstopState says of policy and binding what they should be on the way to what the
// definitions want, and returns the definitions as they are to be registered now:
// failing open only while the policy is in force. The error is what is waited for.
//
// On the way up: the objects are there, then policy and binding, then the webhook fails
// open. On the way down it is the reverse. A policy that reads something else, as one of
// an earlier version does, goes all the way down first: while there is no policy the
// webhook fails closed, and no pod passes it.
func (k *Keeper) backstopState(webhooks []admission.Webhook) (registered []admission.Webhook, wanted Policies, again time.Time, waiting error) {
	defer func() {
		w, _ := BackstopOf(registered)
		wants := w != nil && !w.Backstop.Disabled
		k.backstop.wanted.Store(wants)
		k.backstop.inForce.Store(wants && w.FailurePolicy == admissionregistrationv1.Ignore && wanted.Policy != nil)
	}()
	w, err := BackstopOf(webhooks)
	if err != nil || w == nil {
		return webhooks, Policies{}, again, err
	}
	policy, binding := k.find(policyKind), k.find(bindingKind)
	if w.Backstop.Disabled || policy == nil {
		return webhooks, Policies{}, again, nil
	}
	adopted := k.asRegistered(*w)
	wanted, err = BuildPolicies(k.options.Config, []admission.Webhook{adopted})
	if err != nil {
		return webhooks, Policies{}, again, err
	}
	livePolicy, policySeen := policy.live()
	liveBinding, bindingSeen := binding.live()
	if !policySeen || !bindingSeen {
		return webhooks, wanted, again, errUnseen
	}
	if kind := paramKind(livePolicy); kind != nil && *kind != w.Backstop.Param {
		k.backstop.since = time.Time{}
		return webhooks, Policies{}, again, fmt.Errorf("the backstop waits: the policy of an earlier version, which reads a %s, goes first", kind.Kind)
	}
	if liveBinding == nil || livePolicy == nil {
		k.backstop.since = time.Time{}
		if ready := w.Backstop.Ready; ready != nil {
			if err := ready(); err != nil {
				return webhooks, Policies{}, again, fmt.Errorf("the backstop waits: %w", err)
			}
		}
		return webhooks, wanted, again, errors.New("the backstop is not registered yet")
	}
	all := wantedOf(wanted)
	if err := errors.Join(policy.observe(all, livePolicy), binding.observe(all, liveBinding)); err != nil {
		return k.whileSettled(webhooks), wanted, again, err // it is put right, and as good as before until then
	}
	if k.backstop.since.IsZero() {
		k.backstop.since = newest(livePolicy, liveBinding)
	}
	if at := k.backstop.since.Add(backstopSettle); time.Now().Before(at) {
		return webhooks, wanted, at, errors.New("the backstop is about to take force")
	}
	return failOpen(webhooks), wanted, again, nil
}

// paramKind is that of a policy as it is; nil if there is no policy, or it reads nothing.
func paramKind(live metav1.Object) *admissionregistrationv1.ParamKind {
	policy, ok := live.(*admissionregistrationv1.ValidatingAdmissionPolicy)
	if !ok {
		return nil
	}
	return policy.Spec.ParamKind
}

func (k *Keeper) whileSettled(webhooks []admission.Webhook) []admission.Webhook {
	if k.backstop.since.IsZero() || time.Now().Before(k.backstop.since.Add(backstopSettle)) {
		return webhooks
	}
	return failOpen(webhooks)
}

func wantedOf(p Policies) wanted { return wanted{policies: p} }

// newest is when the younger of the objects was made, by the API server's clock, and
// never later than now.
func newest(objects ...metav1.Object) time.Time {
	var at time.Time
	for _, object := range objects {
		if made := object.GetCreationTimestamp().Time; made.After(at) {
			at = made
		}
	}
	return notLater(at)
}

// asRegistered is the webhook with the selectors that it has in the cluster, if they
// leave out more than its own: for what the API server does not ask the webhook about,
// the policy must not stand in.
func (k *Keeper) asRegistered(w admission.Webhook) admission.Webhook {
	configuration := k.find(mutatingKind)
	if configuration == nil {
		return w
	}
	live, _ := configuration.live()
	object, ok := live.(*admissionregistrationv1.MutatingWebhookConfiguration)
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

// find returns the watched object of a kind, or of "kind name"; nil if it is not watched.
func (k *Keeper) find(what string) *watched {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.watched {
		if w.kind() == what || w.kind()+" "+w.name() == what {
			return w
		}
	}
	return nil
}

// RemovePolicies removes the binding and then the policy that a [Keeper] of that name
// wrote, which goes before what they read.
func RemovePolicies(ctx context.Context, client admissionregistrationclient.AdmissionregistrationV1Interface, o RemoveOptions) ([]Removal, error) {
	options := Options{Config: Config{Name: o.Name}, Client: client, FieldManager: o.manager()}
	never := func(context.Context) error { return nil }
	var out []Removal
	for _, kept := range []kept{bindingObject(options, never), policyObject(options, never)} {
		removal, err := kept.uninstall(ctx, o.dryRun())
		if apierrors.IsNotFound(err) { // before Kubernetes 1.30
			continue
		}
		if err != nil {
			return out, fmt.Errorf("%s %s: %w", kept.kind(), o.Name, err)
		}
		if removal != nil {
			out = append(out, *removal)
		}
	}
	return out, nil
}
