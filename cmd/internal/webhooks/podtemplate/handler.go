// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// Limits. The API server shows 4096 runes of warnings for a request.
const (
	maxTemplates = 4 // that are reviewed of one object
	maxWarnings  = 8
	maxWarning   = 256 // runes
	maxName      = 63  // runes of the object's name in each of them
)

type handler struct {
	resources []metav1.GroupVersionResource
	previews  []Preview
}

// Handle implements [admission.Handler]. An object whose pods are not known gets no warnings: the API server or its
// controller says what is wrong with it.
func (h *handler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update || req.SubResource != "" || !slices.Contains(h.resources, req.Resource) {
		return admission.Allowed(), nil
	}
	if req.Operation == admissionv1.Update && unchanged(req) {
		return admission.Allowed(), nil
	}
	object := read(req.Object.Raw, req.Namespace)
	if object == nil || metav1.GetControllerOfNoCopy(&object.ObjectMeta) != nil {
		return admission.Allowed(), nil
	}
	pods := podsOf(object)
	if req.Operation == admissionv1.Update {
		before := podsOf(read(req.OldObject.Raw, req.Namespace))
		pods = slices.DeleteFunc(pods, func(pod *workload.Pod) bool {
			return slices.ContainsFunc(before, func(old *workload.Pod) bool { return string(old.Raw) == string(pod.Raw) })
		})
	}
	return h.review(ctx, req, object, pods)
}

// unchanged reports whether an update changes no pod, as far as that is seen without building them: not if it changes the
// spec beyond its replicas, or labels or annotations of a custom resource, which pods may get, as those of Notebooks do.
func unchanged(req *admissionv1.AdmissionRequest) bool {
	members := []string{"labels", "annotations"}
	if !strings.Contains(req.Resource.Group, ".") {
		members = nil
	}
	for _, member := range members {
		now, _ := rawjson.Lookup(req.Object.Raw, "metadata", member)
		before, _ := rawjson.Lookup(req.OldObject.Raw, "metadata", member)
		if !bytes.Equal(now, before) {
			return false
		}
	}
	now, before := specOf(req.Object.Raw), specOf(req.OldObject.Raw)
	return len(now) > 0 && slices.EqualFunc(now, before, bytes.Equal)
}

// specOf returns the names and values of a spec, but for replicas.
func specOf(raw []byte) (members [][]byte) {
	spec, _ := rawjson.Lookup(raw, "spec")
	r := rawjson.NewReader(spec)
	r.Object(func(name []byte) {
		if string(name) != "replicas" {
			members = append(members, bytes.Clone(name), r.Value())
		}
	})
	return members
}

// review asks about pods.
func (h *handler) review(ctx context.Context, req *admissionv1.AdmissionRequest, object *manifest.Object, pods []*workload.Pod) (*admission.Response, error) {
	w := warnings{of: object.Kind + " " + shortened(object.Name, maxName), several: len(pods) > 1}
	for _, pod := range pods[:min(len(pods), maxTemplates)] {
		made, err := pod.Owned()
		if err != nil {
			return nil, err
		}
		for _, preview := range h.previews {
			problems, err := preview(ctx, creation(req, made))
			if err != nil {
				// Not wrapped: the API server would repeat the call, and the user would wait for it.
				return nil, errors.New("the pods of the workload are not known: " + err.Error())
			}
			for _, problem := range problems {
				w.add(pod.Template, problem)
			}
		}
	}
	if n := len(pods) - maxTemplates; n > 0 {
		w.texts = append(w.texts[:min(len(w.texts), maxWarnings-1)], fmt.Sprintf("%s: %d of its pod templates were not reviewed", w.of, n))
	}
	return admission.Allowed().Warn(w.texts...), nil
}

// creation returns the request that creates a pod.
func creation(req *admissionv1.AdmissionRequest, pod *manifest.Object) *admissionv1.AdmissionRequest {
	kind, resource := metav1.GroupVersionKind(workload.PodKind), metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	return &admissionv1.AdmissionRequest{
		UID: req.UID, Operation: admissionv1.Create, DryRun: new(true), Namespace: req.Namespace,
		Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource, Object: runtime.RawExtension{Raw: pod.Raw},
	}
}

// read reads the object of a request, in its namespace. It returns nil if it is none.
func read(raw []byte, namespace string) *manifest.Object {
	objects, err := manifest.FromJSON(raw)
	if err != nil || len(objects) != 1 {
		return nil
	}
	objects[0].Namespace = namespace
	return objects[0]
}

// podsOf returns the pods that an object's controller would create, as far as known.
func podsOf(object *manifest.Object) []*workload.Pod {
	if object == nil {
		return nil
	}
	pods, err := workload.PodsOf(object, "", noObject)
	if err != nil {
		pods = slices.DeleteFunc(pods, func(pod *workload.Pod) bool { return pod == nil })
	}
	return pods
}

// noObject is a [workload.Finder]: nothing is read for warnings.
func noObject(string, string, string, string) (*manifest.Object, error) { return nil, nil }

// warnings are about the pods of one object.
type warnings struct {
	of      string
	several bool // pod templates
	texts   []string
}

// add adds a warning, up to the limit.
func (w *warnings) add(template, problem string) {
	of := w.of
	if w.several {
		of += " (" + template + ")"
	}
	text := shortened("pods of "+of+" "+problem, maxWarning)
	if len(w.texts) < maxWarnings && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// shortened returns at most so many runes of a text.
func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
