// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/kube/foreign"
)

// checkForeignTerms reports selector terms and match conditions that other clients have
// added to the server's webhooks.
func (d *doctor) checkForeignTerms(ctx context.Context) {
	const check = "foreign-terms"
	if d.webhooksErr != nil || len(d.webhooks) == 0 { // configurations says so
		return
	}
	api, name := d.Client.AdmissionregistrationV1(), d.Registration.Name
	var terms []foreign.Term
	recorded := false
	look := func(meta metav1.ObjectMeta, webhooks []foreign.Webhook, err error) bool {
		if apierrors.IsNotFound(err) {
			return true
		}
		if err != nil {
			d.Unread(check, "get mutatingwebhookconfigurations and validatingwebhookconfigurations", err)
			return false
		}
		found, known := foreign.Terms(meta, webhooks, foreign.Manager)
		terms, recorded = append(terms, found...), recorded || known
		return true
	}
	mutating, err := api.MutatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if !look(mutating.ObjectMeta, foreign.Mutating(mutating), err) {
		return
	}
	validating, err := api.ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if !look(validating.ObjectMeta, foreign.Validating(validating), err) {
		return
	}
	if policies, err := d.foreignPolicyTerms(ctx); err != nil {
		d.Unread(check, "get validatingadmissionpolicies and validatingadmissionpolicybindings", err)
		return
	} else if len(policies) > 0 {
		d.Fix(check, "remove them, see 'kubectl edit validatingadmissionpolicy,validatingadmissionpolicybinding "+name+"'",
			"terms of other clients narrow the backstop, which does not stand in for the webhook where these exclude: %s", foreign.List(policies))
		if len(terms) == 0 {
			return
		}
	}
	switch {
	case !recorded:
		d.Skip(check, "the configurations do not record the server's own terms: it does not register them itself, or is of an earlier version")
	case len(terms) > 0:
		d.Fix(check, "remove them, see 'kubectl edit mutatingwebhookconfiguration,validatingwebhookconfiguration "+name+"'; if they are intended, write them in the server's configuration; "+
			"with registration.foreignTerms: Refuse the server removes them",
			"terms of other clients narrow the webhooks; objects that these terms exclude bypass them: %s", foreign.List(terms))
	default:
		d.OK(check, "no other client narrows the webhooks")
	}
}

// foreignPolicyTerms returns the terms that other clients have added to the backstop.
func (d *doctor) foreignPolicyTerms(ctx context.Context) ([]foreign.Term, error) {
	api, name := d.Client.AdmissionregistrationV1(), d.Registration.Name
	policy, err := api.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // there is no backstop
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	terms, _ := foreign.PolicyTerms(policy, foreign.Manager)
	binding, err := api.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil {
		more, _ := foreign.BindingTerms(binding, foreign.Manager)
		terms = append(terms, more...)
	}
	return terms, nil
}
