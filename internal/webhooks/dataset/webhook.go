// SPDX-License-Identifier: Apache-2.0

// Package dataset makes pods that mount a Dataset of Fluid land where its data is
// cached. It takes the place of Fluid's own pod webhook, with the same path, labels,
// annotations, plugins and messages, and the file that configures them.
//
// The claims of a pod lead to Datasets and these to their runtimes, which are known from
// watches. Plugins then change a draft of the pod, in an order that a profile says, and
// what they have changed becomes edits to the very bytes that arrived: all of it, or
// none.
package dataset

import (
	"errors"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// The webhooks as the API server knows them: one for pods that ask, and one for the older
// mode. Path is that of Fluid's webhook.
const (
	Name          = "dataset.sallyport.io"
	Path          = "/mutate-fluid-io-v1alpha1-schedulepod"
	NamespaceName = "namespace.dataset.sallyport.io"
	NamespacePath = Path + "/namespace"
)

// Observer is told of each plugin that was asked about a pod, and what came out: one of
// the outcomes below. It is called from many goroutines at once.
type Observer func(plugin, outcome string)

// What becomes of a pod in a plugin.
const (
	OutcomeChanged   = "changed"
	OutcomeUnchanged = "unchanged"
	OutcomeRefused   = "refused"
	OutcomeError     = "error"
)

// Outcomes are all there are.
func Outcomes() []string {
	return []string{OutcomeChanged, OutcomeUnchanged, OutcomeRefused, OutcomeError}
}

// New defines the webhooks over a source. Observe may be nil. The error reports all problems
// in the settings.
func New(source Source, settings Settings, observe Observer) ([]admission.Webhook, error) {
	err := settings.Validate()
	if source == nil {
		err = errors.Join(errors.New("dataset: no source of datasets"), err)
	}
	if err != nil {
		return nil, err
	}
	profile, err := settings.profile()
	if err != nil {
		return nil, err
	}
	if observe == nil {
		observe = func(string, string) {}
	}
	namespaced := admissionregistrationv1.NamespacedScope
	define := func(name, path string, h handler) admission.Webhook {
		h.source, h.settings, h.profile, h.observe = source, settings, profile, observe
		return admission.Webhook{
			Name: name,
			Path: path,
			Type: admission.TypeMutating,
			// Where a pod may run cannot be changed later.
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: &namespaced,
				},
			}},
			Handler: &h,
		}
	}
	// A selector cannot say "one of these labels", and a webhook for each would add up
	// their timeouts.
	asked := define(Name, Path, handler{})
	asked.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "asks", Expression: hasOneOf()}}
	webhooks := []admission.Webhook{asked}
	if settings.NamespaceLabel {
		older := define(NamespaceName, NamespacePath, handler{all: true})
		older.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{InjectionLabel: "true"}}
		older.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: InjectionLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"false"}},
		}}
		older.MatchConditions = []admissionregistrationv1.MatchCondition{{
			Name: "no-other-is-asked", Expression: "!(" + hasOneOf() + ")",
		}}
		webhooks = append(webhooks, older)
	}
	return webhooks, nil
}

// hasOneOf is a CEL expression: the object has one of the labels that ask, "true".
func hasOneOf() string {
	var labels []string
	for _, in := range optInLabels {
		labels = append(labels, "'"+in.label+"'")
	}
	return "has(object.metadata.labels) && [" + strings.Join(labels, ", ") + "].exists(l, l in object.metadata.labels && object.metadata.labels[l] == 'true')"
}
