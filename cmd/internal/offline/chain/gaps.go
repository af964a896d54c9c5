// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/defaults"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/limitranger"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
)

// What the API server sets before a policy sees an object, and nobody else knows: its metadata in
// k8s.io/apiserver/pkg/endpoints/handlers/create.go and pkg/registry/rest/meta.go, and fields of a
// pod by its plugins ServiceAccount, Priority, DefaultTolerationSeconds and RuntimeClass, which run before
// the policies. A policy that reads such a field is not evaluated: its outcome is [Unknown].

// known is what is known of a variable of policies.
type known struct {
	content any
	// gaps are paths that the API server sets.
	gaps [][]string
	// partial is set if every field that is not there may be one that the API server sets.
	partial bool
	// whole is set if nothing is known.
	whole bool
}

// lacks reports whether what is read is not known.
func (k *known) lacks(read reads.Read) bool {
	if k.whole {
		return true
	}
	for _, gap := range k.gaps {
		if n := min(len(gap), len(read.Path)); matches(gap[:n], read.Path[:n]) && (n == len(gap) || !read.Shallow) {
			return true
		}
	}
	return k.partial && len(read.Path) > 0 && !inPodTemplate(read.Path) && !present(k.content, read.Path)
}

func matches(a, b []string) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool { return a == b || a == reads.Any || b == reads.Any })
}

// inPodTemplate reports whether a path is in the pod of a workload, whose defaults are set here.
func inPodTemplate(path []string) bool {
	i := slices.Index(path, "template")
	return i >= 0 && len(path) > i+1 && path[i+1] == "spec" && slices.Contains([]int{1, 3}, i)
}

// present reports whether a path is there, in all elements of lists.
func present(content any, path []string) bool {
	if len(path) == 0 {
		return content != nil
	}
	switch in := content.(type) {
	case map[string]any:
		if path[0] != reads.Any {
			return present(in[path[0]], path[1:])
		}
		for _, value := range in {
			if !present(value, path[1:]) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(in, func(value any) bool { return !present(value, path[1:]) })
	}
	return false
}

func paths(list ...string) [][]string {
	out := make([][]string, len(list))
	for i := range list {
		out[i] = strings.Split(list[i], ".")
	}
	return out
}

// absent returns those of the paths that are not in an object.
func absent(content any, list ...string) [][]string {
	return slices.DeleteFunc(paths(list...), func(path []string) bool { return present(content, path) })
}

// ofStored are set when an object is stored.
var ofStored = []string{"metadata.uid", "metadata.creationTimestamp", "metadata.resourceVersion", "metadata.generation", "metadata.managedFields", "status"}

// stored returns what is known of an object that is stored: what its file has.
func (e *evaluation) stored(object runtime.Object) (*known, error) {
	at, err := content(object)
	if err != nil || at == nil {
		return &known{}, err
	}
	gvk := object.GetObjectKind().GroupVersionKind()
	return &known{content: at, gaps: append(absent(at, ofStored...), gapsOfKind(gvk, at)...), partial: e.kinds.partial(gvk)}, nil
}

// ofRequest returns what is known in a phase of the object of a request.
func (e *evaluation) ofRequest(phase lint.Phase, a *apiserveradmission.VersionedAttributes) (*known, error) {
	at, err := content(a.VersionedObject.Object())
	if err != nil || at == nil {
		return &known{}, err
	}
	k := &known{content: at, gaps: paths("metadata.managedFields"), partial: e.kinds.partial(a.VersionedKind)}
	k.gaps = append(k.gaps, gapsOfKind(a.VersionedKind, at)...)
	if e.limitsUnknown {
		k.gaps = append(k.gaps, paths("spec.containers.*.resources", "spec.initContainers.*.resources")...)
	}
	if e.annotationUnknown {
		k.gaps = append(k.gaps, []string{"metadata", "annotations", limitranger.Annotation})
	}
	mutating := phase == lint.MutatingPolicies || phase == lint.MutatingWebhooks
	switch {
	case a.GetOperation() == apiserveradmission.Update:
		k.gaps = append(k.gaps, absent(at, ofStored...)...)
		if !mutating {
			k.gaps = append(k.gaps, paths("metadata.generation", "status")...)
			if a.VersionedKind == autoscalingv1.SchemeGroupVersion.WithKind("Scale") {
				k.gaps = append(k.gaps, paths(ofScale...)...)
			}
		}
	case !mutating: // created
		k.gaps = append(k.gaps, paths("metadata.uid", "metadata.creationTimestamp", "metadata.generation", "status")...)
		k.gaps = append(k.gaps, absent(at, "metadata.name")...)
		if a.VersionedKind == corev1.SchemeGroupVersion.WithKind("Namespace") {
			k.gaps = append(k.gaps, paths("spec.finalizers")...)
		}
		if a.VersionedKind == corev1.SchemeGroupVersion.WithKind("Service") {
			k.gaps = append(k.gaps, absent(at, "spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy", "spec.ports.*.nodePort", "spec.healthCheckNodePort")...)
		}
	}
	return k, nil
}

// gapsOfKind returns what plugins set in objects of a kind, as far as this object leaves it to them.
func gapsOfKind(gvk schema.GroupVersionKind, object any) [][]string {
	if gvk != corev1.SchemeGroupVersion.WithKind("Pod") {
		return nil
	}
	gaps := absent(object, "spec.priority", "spec.preemptionPolicy", "spec.priorityClassName", "spec.serviceAccountName", "spec.serviceAccount", "spec.imagePullSecrets")
	if !toleratesOutages(object) {
		gaps = append(gaps, paths("spec.tolerations")...)
	}
	if present(object, []string{"spec", "runtimeClassName"}) {
		gaps = append(gaps, paths("spec.overhead", "spec.nodeSelector", "spec.tolerations")...)
	}
	return gaps
}

// toleratesOutages reports whether a pod has what DefaultTolerationSeconds would add:
// k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds.
func toleratesOutages(object any) bool {
	pod := &corev1.Pod{}
	at, _ := object.(map[string]any)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(at, pod) != nil {
		return false
	}
	tolerates := func(key string) bool {
		return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
	}
	return tolerates(corev1.TaintNodeNotReady) && tolerates(corev1.TaintNodeUnreachable)
}

// partial reports whether the API server sets defaults of a kind that are not set here.
func (k *kinds) partial(gvk schema.GroupVersionKind) bool {
	object, err := scheme.Scheme.New(gvk)
	if err != nil {
		return !k.definitions.Knows(gvk)
	}
	return !defaults.Set(object)
}

// A question is what an evaluation of expressions depends on.
type question struct {
	phase      lint.Phase
	attributes *apiserveradmission.VersionedAttributes
	param      runtime.Object
}

// unread returns the first field that is read and not known here; empty if all are known.
func (e *evaluation) unread(q question, found []reads.Read) (string, error) {
	e.noteOptions(found)
	of := map[string]*known{}
	for _, read := range found {
		if of[read.Root] == nil {
			k, err := e.knowledge(q, read.Root)
			if err != nil {
				return "", err
			}
			of[read.Root] = k
		}
		if of[read.Root].lacks(read) {
			return read.String(), nil
		}
	}
	return "", nil
}

func (e *evaluation) knowledge(q question, root string) (*known, error) {
	switch root {
	case reads.Object:
		return e.ofRequest(q.phase, q.attributes)
	case reads.OldObject:
		return e.stored(q.attributes.VersionedOldObject.Object())
	case reads.Params:
		return e.stored(q.param)
	case reads.NamespaceObject:
		if e.guessed {
			return &known{whole: true}, nil
		}
		object, exists, err := e.namespaces.GetByKey(q.attributes.GetNamespace())
		if err != nil || !exists {
			return &known{}, err
		}
		at, err := content(object.(runtime.Object))
		return &known{content: at, gaps: absent(at, ofStored[:4]...)}, err
	case reads.Request:
		k := &known{gaps: paths("options.fieldValidation")}
		if e.FieldManager == "" {
			k.gaps = append(k.gaps, paths("options.fieldManager")...)
		}
		// Validating policies see the name that the API server generates.
		if e.Request.Operation == admissionv1.Create && e.Request.Name == "" && (q.phase == lint.ValidatingPolicies || q.phase == lint.ValidatingWebhooks) {
			k.gaps = append(k.gaps, paths("name")...)
		}
		if len(e.Request.UserInfo.Extra) == 0 {
			k.gaps = append(k.gaps, paths("userInfo.extra")...)
		}
		if e.Request.UserInfo.UID == "" {
			k.gaps = append(k.gaps, paths("userInfo.uid")...)
		}
		return k, nil
	}
	return &known{}, nil
}

// readsVolumes reports whether the volume of a service account's token could decide.
func readsVolumes(found []reads.Read) bool {
	return slices.ContainsFunc(found, func(r reads.Read) bool {
		return r.Root == reads.Object && (!r.Shallow && len(r.Path) < 2 || len(r.Path) > 1 && r.Path[0] == "spec" && r.Path[1] == "volumes" ||
			slices.Contains(r.Path, "volumeMounts") || !r.Shallow && slices.ContainsFunc([]string{"containers", "initContainers"}, func(s string) bool {
			return len(r.Path) > 1 && len(r.Path) < 4 && r.Path[1] == s
		}))
	})
}
