// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiserveradmission "k8s.io/apiserver/pkg/admission"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/plugins"
)

// Plugins is the phase of kube-apiserver's own plugins, of which some run before all other phases and some after
// them.
const Plugins lint.Phase = "plugins"

// newPod is a pod that a request with objects from files creates; nil for all other requests.
type newPod struct {
	objects *plugins.Objects
	sent    *corev1.Pod
}

// newPod returns the new pod of a request.
func (e *evaluation) newPod(a *attributes) (*newPod, error) {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !e.FromFiles || !ok || a.GetOperation() != apiserveradmission.Create || a.GetSubresource() != "" {
		return nil, nil
	}
	objects, err := plugins.Read(e.Objects, e.Request.Namespace)
	if err != nil {
		return nil, err
	}
	return &newPod{objects, pod.DeepCopy()}, nil
}

// checkPlugins evaluates the plugins that the phases leave out.
func (e *evaluation) checkPlugins(a *attributes, p *newPod) error {
	if p == nil {
		return nil
	}
	pod, _ := a.GetObject().(*corev1.Pod)
	var origins []admission.Origin
	for _, s := range e.result.Steps {
		origins = slices.Concat(origins, s.origins)
	}
	var answer plugins.Answer // lifecycle and checkLimits say the rest
	p.objects.CheckPod(&answer, plugins.Pod{Namespace: a.GetNamespace(), Sent: p.sent, Final: pod, Origins: origins})
	if text := answer.Open.String(); text != "" {
		e.result.Notes = append(e.result.Notes, text)
	}
	if answer.Denied == nil {
		e.result.Unknown = append(e.result.Unknown, answer.Unknown...)
		return nil
	}
	e.add(Step{Phase: Plugins, Name: answer.By, Outcome: Denied, Messages: []string{answer.Denied.Message}})
	return &apierrors.StatusError{ErrStatus: *answer.Denied}
}
