// SPDX-License-Identifier: Apache-2.0

// Package dataset schedules pods that mount a Fluid Dataset onto nodes where its data
// is cached. It replaces Fluid's own pod webhook, with the same path, labels,
// annotations, plugins, messages and configuration file.
//
// The claims of a pod lead to Datasets and their runtimes, which are known from
// watches. Plugins then change a draft of the pod in the order of a profile. The
// changes become edits to the original bytes, all or none.
package dataset

import (
	"errors"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// There is one webhook for pods with opt-in, and one for the older mode. Path is that
// of Fluid's webhook.
const (
	Name          = "dataset.sallyport.io"
	Path          = "/mutate-fluid-io-v1alpha1-schedulepod"
	NamespaceName = "namespace.dataset.sallyport.io"
	NamespacePath = Path + "/namespace"
)

// Observer is notified of each plugin called for a pod and its outcome, one of those
// below. It is called concurrently.
type Observer func(plugin, outcome string)

// Outcomes of a plugin for a pod.
const (
	OutcomeChanged   = "changed"
	OutcomeUnchanged = "unchanged"
	OutcomeRefused   = "refused"
	OutcomeError     = "error"
)

// Outcomes returns all outcomes.
func Outcomes() []string {
	return []string{OutcomeChanged, OutcomeUnchanged, OutcomeRefused, OutcomeError}
}

// New defines the webhooks for a source. Observe may be nil. The error reports all
// problems in the settings.
func New(source Source, settings Settings, observe Observer) ([]admission.Webhook, error) {
	err := settings.Validate()
	if source == nil {
		err = errors.Join(errors.New("dataset: no source of datasets"), err)
	}
	if err != nil {
		return nil, err
	}
	profile, err := settings.Profile()
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
			// Scheduling constraints cannot be changed later.
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: &namespaced,
				},
			}},
			Handler: &h,
		}
	}
	// A selector cannot express "one of these labels", and one webhook per label would
	// add up their timeouts.
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

// hasOneOf is a CEL expression: the object has an opt-in label with the value "true".
func hasOneOf() string {
	var labels []string
	for _, in := range optInLabels {
		labels = append(labels, "'"+in.label+"'")
	}
	return "has(object.metadata.labels) && [" + strings.Join(labels, ", ") + "].exists(l, l in object.metadata.labels && object.metadata.labels[l] == 'true')"
}
