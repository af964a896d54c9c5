// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/internal/kube/foreign"
	"github.com/sallyport-io/sallyport/internal/registration/ownership"
)

// liveWebhook holds what a Controller needs to know about a webhook in the cluster.
type liveWebhook struct {
	name      string
	caBundle  []byte
	selectors [2]*metav1.LabelSelector // in the order of selectorFields
}

var selectorFields = [2]string{"namespaceSelector", "objectSelector"}

// removable is an object that uninstalling removes.
type removable interface {
	managed
	uninstall(ctx context.Context, dryRun []string) (*Removal, error)
}

func mutatingObject(o Options, wait func(context.Context) error) removable {
	return &applied[*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfigurationList, *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration]{
		objectName: o.Config.Name, kindName: mutatingKind, manager: o.FieldManager, wait: wait,
		example: &admissionregistrationv1.MutatingWebhookConfiguration{}, client: o.Client.MutatingWebhookConfigurations(),
		desired: func(d desired) *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration {
			return d.Mutating
		},
		at: (*admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration).WithResourceVersion,
		shared: &shared[*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration]{
			empty: o.Config.mutating,
			webhooks: func(c *admissionregistrationv1.MutatingWebhookConfiguration) []liveWebhook {
				var out []liveWebhook
				for _, w := range c.Webhooks {
					out = append(out, liveWebhook{w.Name, w.ClientConfig.CABundle, [2]*metav1.LabelSelector{w.NamespaceSelector, w.ObjectSelector}})
				}
				return out
			},
			narrowing: foreign.Mutating, refuse: o.RefuseForeignTerms,
			selectors: func(c *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration) []ownership.SelectorField {
				var out []ownership.SelectorField
				for i := range c.Webhooks {
					w := &c.Webhooks[i]
					out = append(out, ownership.SelectorField{Webhook: *w.Name, Field: selectorFields[0], Value: &w.NamespaceSelector}, ownership.SelectorField{Webhook: *w.Name, Field: selectorFields[1], Value: &w.ObjectSelector})
				}
				return out
			},
		},
	}
}

func validatingObject(o Options, wait func(context.Context) error) removable {
	return &applied[*admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfigurationList, *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration]{
		objectName: o.Config.Name, kindName: validatingKind, manager: o.FieldManager, wait: wait,
		example: &admissionregistrationv1.ValidatingWebhookConfiguration{}, client: o.Client.ValidatingWebhookConfigurations(),
		desired: func(d desired) *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration {
			return d.Validating
		},
		at: (*admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration).WithResourceVersion,
		shared: &shared[*admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration]{
			empty: o.Config.validating,
			webhooks: func(c *admissionregistrationv1.ValidatingWebhookConfiguration) []liveWebhook {
				var out []liveWebhook
				for _, w := range c.Webhooks {
					out = append(out, liveWebhook{w.Name, w.ClientConfig.CABundle, [2]*metav1.LabelSelector{w.NamespaceSelector, w.ObjectSelector}})
				}
				return out
			},
			narrowing: foreign.Validating, refuse: o.RefuseForeignTerms,
			selectors: func(c *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration) []ownership.SelectorField {
				var out []ownership.SelectorField
				for i := range c.Webhooks {
					w := &c.Webhooks[i]
					out = append(out, ownership.SelectorField{Webhook: *w.Name, Field: selectorFields[0], Value: &w.NamespaceSelector}, ownership.SelectorField{Webhook: *w.Name, Field: selectorFields[1], Value: &w.ObjectSelector})
				}
				return out
			},
		},
	}
}

func policyObject(o Options, wait func(context.Context) error) removable {
	return &applied[*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyList, *admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration]{
		objectName: o.Config.Name, kindName: policyKind, manager: o.FieldManager, wait: wait,
		example: &admissionregistrationv1.ValidatingAdmissionPolicy{}, client: o.Client.ValidatingAdmissionPolicies(),
		desired: func(d desired) *admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration {
			return d.policies.policy
		},
		at: (*admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration).WithResourceVersion,
	}
}

func bindingObject(o Options, wait func(context.Context) error) removable {
	return &applied[*admissionregistrationv1.ValidatingAdmissionPolicyBinding, *admissionregistrationv1.ValidatingAdmissionPolicyBindingList, *admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration]{
		objectName: o.Config.Name, kindName: bindingKind, manager: o.FieldManager, wait: wait,
		example: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, client: o.Client.ValidatingAdmissionPolicyBindings(),
		desired: func(d desired) *admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration {
			return d.policies.binding
		},
		at: (*admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration).WithResourceVersion,
	}
}
