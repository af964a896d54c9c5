// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// configuration is a webhook configuration of either kind.
type configuration struct {
	*Object
	mutating bool
	webhooks []*webhook
	meta     metav1.ObjectMeta
}

// webhook is an entry of a configuration. Validating entries have no reinvocation
// policy.
type webhook struct {
	admissionregistrationv1.MutatingWebhook
	config *configuration
	index  int
}

func (in *Inventory) addMutating(o *Object) error {
	t, err := read[admissionregistrationv1.MutatingWebhookConfiguration](o)
	if err != nil {
		return err
	}
	c := &configuration{Object: o, mutating: true, meta: t.value.ObjectMeta}
	for i := range t.value.Webhooks {
		c.webhooks = append(c.webhooks, &webhook{t.value.Webhooks[i], c, i})
	}
	in.configurations = append(in.configurations, c)
	return nil
}

func (in *Inventory) addValidating(o *Object) error {
	t, err := read[admissionregistrationv1.ValidatingWebhookConfiguration](o)
	if err != nil {
		return err
	}
	c := &configuration{Object: o, meta: t.value.ObjectMeta}
	for i, v := range t.value.Webhooks {
		c.webhooks = append(c.webhooks, &webhook{admissionregistrationv1.MutatingWebhook{
			Name: v.Name, ClientConfig: v.ClientConfig, Rules: v.Rules, FailurePolicy: v.FailurePolicy, MatchPolicy: v.MatchPolicy,
			NamespaceSelector: v.NamespaceSelector, ObjectSelector: v.ObjectSelector, SideEffects: v.SideEffects, TimeoutSeconds: v.TimeoutSeconds,
			AdmissionReviewVersions: v.AdmissionReviewVersions, MatchConditions: v.MatchConditions,
		}, c, i})
	}
	in.configurations = append(in.configurations, c)
	return nil
}

// pointer returns the JSON pointer to a field of the entry.
func (w *webhook) pointer(field string) string {
	if field == "" {
		return fmt.Sprintf("/webhooks/%d", w.index)
	}
	return fmt.Sprintf("/webhooks/%d/%s", w.index, field)
}

// title returns "configuration/webhook", for messages about other webhooks.
func (w *webhook) title() string { return w.config.Name + "/" + w.Name }

// failsClosed applies the API's default.
func (w *webhook) failsClosed() bool {
	return w.FailurePolicy == nil || *w.FailurePolicy == admissionregistrationv1.Fail
}

// seconds returns the API server's timeout.
func (w *webhook) seconds() int32 {
	if w.TimeoutSeconds == nil {
		return 10 // the API's default
	}
	return *w.TimeoutSeconds
}

// exact reports whether requests through other versions of a resource bypass the
// webhook.
func (w *webhook) exact() bool {
	return w.MatchPolicy != nil && *w.MatchPolicy == admissionregistrationv1.Exact
}

// namespace returns the namespace of the server's Service, or "" if unknown.
func (w *webhook) namespace() string {
	if s := w.ClientConfig.Service; s != nil {
		return s.Namespace
	}
	return ""
}

// serviceOf returns the named Service, or nil if it was not read.
func (in *Inventory) serviceOf(namespace, name string) *typed[corev1.Service] {
	return in.servicesByName[namespace+"/"+name]
}
