// SPDX-License-Identifier: Apache-2.0

// Package poddefault adds to pods what the PodDefaults of their namespace say:
// credentials, volumes, environment, sidecars. It takes the place of Kubeflow's
// PodDefault webhook, with the same API, path, annotations and messages.
//
// Each pod that is created is matched against compiled PodDefaults held in memory;
// what it lacks is added by edits to the very bytes that arrived. Nothing that is
// there is rewritten, and a pod that was injected before is not changed again.
package poddefault

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/admission"
)

// The webhook as the API server knows it.
const (
	Name = "poddefault.sallyport.io"
	Path = "/apply-poddefault"
)

// Source yields the PodDefaults of a namespace whose selectors match a pod with
// the given labels, in name order. An error is a fault of the webhook: the pod is
// neither admitted nor denied by it. Wrap it with [admission.Unavailable] if
// another try may succeed.
type Source interface {
	Select(ctx context.Context, namespace string, pod Labels) ([]*Compiled, error)
}

// Settings are choices that hold for all PodDefaults.
type Settings struct {
	// CommandExcluded are names of containers whose command and args are left
	// alone. [DefaultSettings] has istio-proxy, as Kubeflow's webhook does.
	CommandExcluded []string `json:"excludedContainers"`
	// MeshContainers are names of containers that get neither env, envFrom nor
	// volume mounts: a mesh proxy configures itself by env, which PodDefaults
	// meant for the application would break. [DefaultSettings] has istio-proxy and
	// linkerd-proxy.
	MeshContainers []string `json:"meshContainers"`
}

// Validate reports every mistake, by the names that the fields have in a file.
func (s Settings) Validate() error {
	var errs []error
	for _, list := range []struct {
		field string
		names []string
	}{{"excludedContainers", s.CommandExcluded}, {"meshContainers", s.MeshContainers}} {
		for i, name := range list.names {
			for _, problem := range validation.IsDNS1123Label(name) {
				errs = append(errs, fmt.Errorf("%s[%d]: %q: %s", list.field, i, name, problem))
			}
			if slices.Contains(list.names[:i], name) {
				errs = append(errs, fmt.Errorf("%s[%d]: %q stands there twice", list.field, i, name))
			}
		}
	}
	return errors.Join(errs...)
}

// DefaultSettings are the settings of a webhook that was not told otherwise.
func DefaultSettings() Settings {
	return Settings{
		CommandExcluded: []string{"istio-proxy"},
		MeshContainers:  []string{"istio-proxy", "linkerd-proxy"},
	}
}

// New defines the webhook over a source of PodDefaults. The error has every mistake
// in the settings.
func New(source Source, settings Settings) (admission.Webhook, error) {
	err := settings.Validate()
	if source == nil {
		err = errors.Join(errors.New("poddefault: no source of PodDefaults"), err)
	}
	if err != nil {
		return admission.Webhook{}, err
	}
	namespaced := admissionregistrationv1.NamespacedScope
	return admission.Webhook{
		Name: Name,
		Path: Path,
		Type: admission.TypeMutating,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: &namespaced,
			},
		}},
		// What the handler would leave alone anyway need not be sent.
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{
				Name:       "not-excluded",
				Expression: "!has(object.metadata.annotations) || !('" + ExcludeAnnotation + "' in object.metadata.annotations) || object.metadata.annotations['" + ExcludeAnnotation + "'] != 'true'",
			},
			{
				Name:       "not-a-mirror-pod",
				Expression: "!has(object.metadata.annotations) || !('" + MirrorAnnotation + "' in object.metadata.annotations)",
			},
		},
		Handler: &handler{source: source, settings: settings},
	}, nil
}

type handler struct {
	source   Source
	settings Settings
}

var podResource = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}

// Handle implements [admission.Handler].
func (h *handler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if req.Resource != podResource {
		return admission.BadRequest("the request is for %s; this webhook is for pods of version v1: correct the rules of its configuration",
			req.Resource.String()), nil
	}
	if req.Operation != admissionv1.Create || req.SubResource != "" {
		return admission.Allowed(), nil
	}
	if len(req.Object.Raw) == 0 {
		return admission.BadRequest("the request has no object; expected a pod"), nil
	}
	meta, ok := readMetadata(req.Object.Raw)
	if !ok {
		return admission.BadRequest("the request's object is no pod: it is no JSON object, or its metadata is none"), nil
	}
	if meta.annotations.Get(ExcludeAnnotation) == "true" || meta.annotations.Has(MirrorAnnotation) {
		return admission.Allowed(), nil
	}
	namespace := meta.namespace
	if namespace == "" {
		namespace = req.Namespace
	}
	chosen, err := h.choose(ctx, namespace, meta.labels, nil)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		return admission.Allowed(), nil
	}
	pod, ok := readPod(req.Object.Raw, meta)
	if !ok {
		return admission.BadRequest("the request's object is no pod: it has no spec, or a container that is none"), nil
	}
	for mute := []*Compiled(nil); ; {
		_, invalid := usable(pod, chosen)
		if !silence(invalid, &mute) {
			break
		}
		if chosen, err = h.choose(ctx, namespace, meta.labels, mute); err != nil {
			return nil, err
		}
	}
	m := mergeAll(pod, chosen, &h.settings)
	if len(m.conflicts) > 0 {
		return m.denial(), nil
	}
	return m.response(admission.WantsOrigins(ctx)), nil
}

// silence adds to mute those of the PodDefaults that add labels and are not in it yet,
// and tells whether there were any. What is not applied adds no label, so it must not
// select others by one.
func silence(invalid []*Compiled, mute *[]*Compiled) bool {
	known := len(*mute)
	for _, c := range invalid {
		if c.problem == nil && len(c.labels) > 0 && !slices.ContainsFunc(*mute, func(other *Compiled) bool { return other.name == c.name }) {
			*mute = append(*mute, c)
		}
	}
	return len(*mute) > known
}

// choose selects the PodDefaults for a pod, to a fixed point: a label that one of
// them adds may select another, but none of those in mute. What was chosen once stays
// chosen.
func (h *handler) choose(ctx context.Context, namespace string, pod Labels, mute []*Compiled) ([]*Compiled, error) {
	chosen, err := h.source.Select(ctx, namespace, pod)
	for err == nil {
		known := len(pod)
		for _, c := range chosen {
			if slices.ContainsFunc(mute, func(other *Compiled) bool { return other.name == c.name }) {
				continue
			}
			for _, l := range c.labels {
				if c.problem == nil && !pod.Has(l.key) {
					pod = append(slices.Clip(pod), label{[]byte(l.key), []byte(l.value)})
				}
			}
		}
		if len(pod) == known {
			return chosen, nil
		}
		var more []*Compiled
		if more, err = h.source.Select(ctx, namespace, pod); err == nil {
			for _, c := range more {
				if !slices.ContainsFunc(chosen, func(other *Compiled) bool { return other.name == c.name }) {
					chosen = append(chosen, c)
				}
			}
			slices.SortFunc(chosen, byName)
		}
	}
	return nil, err
}
