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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// The webhooks as the API server knows them: one for each label by which a pod can ask,
// since a selector cannot say "one of these", and one for the older mode. Path is the one of Fluid's webhook.
const (
	Name           = "dataset.sallyport.io"
	Path           = "/mutate-fluid-io-v1alpha1-schedulepod"
	ServerlessName = "serverless.dataset.sallyport.io"
	ServerlessPath = Path + "/serverless"
	SidecarName    = "sidecar.dataset.sallyport.io"
	SidecarPath    = Path + "/sidecar"
	NamespaceName  = "namespace.dataset.sallyport.io"
	NamespacePath  = Path + "/namespace"
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

// New defines the webhooks over a source. Observe may be nil. The error has every mistake
// in the settings and in the profile that they name.
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
	define := func(name, path, only string, object, namespace *metav1.LabelSelector) admission.Webhook {
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
			ObjectSelector:    object,
			NamespaceSelector: namespace,
			Handler:           &handler{source: source, settings: settings, profile: profile, only: only, all: namespace != nil, observe: observe},
		}
	}
	label := func(key string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: "true"}}
	}
	// One that says so is not even sent.
	notOptedOut := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: InjectionLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"false"}},
	}}
	webhooks := []admission.Webhook{
		// The first answers for all, so that a configuration of Fluid's own that leads to it
		// goes on to work.
		define(Name, Path, "", label(ServerfulLabel), nil),
		define(ServerlessName, ServerlessPath, ServerlessLabel, label(ServerlessLabel), nil),
		define(SidecarName, SidecarPath, SidecarLabel, label(SidecarLabel), nil),
	}
	if settings.NamespaceLabel {
		webhooks = append(webhooks, define(NamespaceName, NamespacePath, "", notOptedOut, label(InjectionLabel)))
	}
	return webhooks, nil
}
