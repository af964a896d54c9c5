// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/conditions"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// defined returns the definitions of a built-in webhook, with the terms of its entry.
func (b *Builtin) defined(c *Config, from Sources) ([]admission.Webhook, error) {
	webhooks, err := b.webhooks(c, from)
	entry := c.entry(b.Name)
	if err != nil || entry == nil {
		return webhooks, err
	}
	if err := b.place(entry, webhooks); err != nil {
		return nil, err
	}
	for i := range webhooks {
		w := &webhooks[i]
		if slices.Contains(b.fixed, w.Name) {
			continue
		}
		if entry.MatchPolicy != nil {
			w.MatchPolicy = admissionregistrationv1.MatchPolicyType(*entry.MatchPolicy)
		}
		if entry.ReinvocationPolicy != nil && w.Type == admission.TypeMutating {
			w.ReinvocationPolicy = admissionregistrationv1.ReinvocationPolicyType(*entry.ReinvocationPolicy)
		}
		w.NamespaceSelector = selectors.Both(w.NamespaceSelector, entry.NamespaceSelector)
		w.ObjectSelector = selectors.Both(w.ObjectSelector, entry.ObjectSelector)
		w.MatchConditions = append(slices.Clone(w.MatchConditions), entry.MatchConditions...)
		if w.Backstop != nil {
			narrower := *w.Backstop
			narrower.MatchConditions = append(slices.Clone(narrower.MatchConditions), entry.MatchConditions...)
			w.Backstop = &narrower
		}
	}
	return webhooks, nil
}

// adjust applies the entry's own settings to a webhook, unless a flag sets the field for all
// webhooks. It is for RegistrationSettings.Adjust.
func (c *Config) adjust(w *admission.Webhook) {
	for _, entry := range c.Webhooks {
		if !names(&entry, w.Name) {
			continue
		}
		if entry.FailurePolicy != nil && !c.set["registration.failurePolicy"] {
			w.FailurePolicy = admissionregistrationv1.FailurePolicyType(*entry.FailurePolicy)
		}
		if entry.TimeoutSeconds != nil {
			w.TimeoutSeconds = *entry.TimeoutSeconds
		}
	}
	for _, b := range Builtins() {
		if b.adjust != nil {
			b.adjust(c, w)
		}
	}
}

// called returns whether the API server calls the webhooks of an entry for a new pod, by the entry's own terms.
func called(entry *configv1alpha1.Webhook, labelsOf func(namespace string) (set labels.Set, known bool)) (func(*admissionv1.AdmissionRequest) bool, error) {
	if entry == nil {
		entry = &configv1alpha1.Webhook{}
	}
	namespaces, err := selectorOf(entry.NamespaceSelector)
	pods, errPods := selectorOf(entry.ObjectSelector)
	excludes := new(conditions.Latest).Of(entry.MatchConditions)
	return func(req *admissionv1.AdmissionRequest) bool {
		if !namespaces.Empty() {
			if set, _ := labelsOf(req.Namespace); !namespaces.Matches(set) {
				return false
			}
		}
		if pods.Empty() && excludes == nil {
			return true
		}
		pod := &corev1.Pod{}
		if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
			return true // the handler refuses it
		}
		pod.Namespace = req.Namespace
		return pods.Matches(labels.Set(pod.Labels)) && (excludes == nil || !excludes.Excludes(pod))
	}, errors.Join(err, errPods)
}

// selectorOf returns the selector of a webhook; an absent one selects everything.
func selectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}
