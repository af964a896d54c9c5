// SPDX-License-Identifier: Apache-2.0

// Package workload knows the pods that workloads of Kubernetes and Kubeflow create,
// with the names and labels that their controllers set.
package workload

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A Pod is a pod that a workload creates, or a standalone pod with a nil MadeBy.
type Pod struct {
	*manifest.Object
	// Template is the place of the pod's template in its owner, for messages.
	Template string
	// Guessed is set if the template was found by its shape, because the kind is
	// unknown.
	Guessed bool
	// Added are the labels that the controller adds. Some values are stand-ins.
	Added map[string]string
	// Controller is the object that creates the pod, such as a ReplicaSet of a Deployment.
	// The pod does not name it, because its UID is a stand-in.
	Controller metav1.OwnerReference
}

// Owned returns the pod as its controller sends it, which it names.
func (p *Pod) Owned() (*manifest.Object, error) {
	if p.Controller.Name == "" {
		return p.Object, nil
	}
	return p.EditMetadata(func(meta map[string]any) { meta["ownerReferences"] = []metav1.OwnerReference{p.Controller} })
}

// PodKind is the kind of pods.
var PodKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// A Finder finds a referenced object, or returns nil if it does not exist.
type Finder func(apiVersion, kind, namespace, name string) (*manifest.Object, error)

// PodsOf returns the pods that an object's controller would create, one per template; a
// pod returns itself. There are none for objects that are not known to create any.
// Namespace is the default for objects without one.
func PodsOf(o *manifest.Object, namespace string, find Finder) ([]*Pod, error) {
	kind := kindOf(o.GVK())
	switch {
	case isWorkspace(o):
		return podsOfWorkspace(o, namespace, find)
	case kind == nil && (scheme.Scheme.Recognizes(o.GVK()) || o.Kind == "CustomResourceDefinition"):
		return nil, nil
	case kind == nil:
		return podsByShape(o, namespace)
	case kind.template == nil:
		return []*Pod{{Object: o}}, nil
	}
	holder := o
	if kind.Name == "TrainJob" {
		var err error
		if holder, err = runtimeOf(o, find); err != nil {
			return nil, err
		}
	}
	templates := templatesAt(holder.Raw, kind.template)
	if len(templates) == 0 {
		return nil, o.ErrorAt("", fmt.Sprintf("%s: it makes no pods: it has no pod template at %s", o.Title(), strings.Join(kind.template, ".")))
	}
	var pods []*Pod
	for _, t := range templates {
		pod, err := t.pod(o, holder, namespace, kind.finish, false)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// A foundTemplate is a pod template inside an object.
type foundTemplate struct {
	path []string
	raw  jsontext.Value
	// role is the value of "*": the type of a replica, or the name or index of an
	// element.
	role string
}

// templatesAt returns the templates at a path, ordered by names and elements.
func templatesAt(raw jsontext.Value, path []string) []foundTemplate {
	found := []foundTemplate{{raw: raw}}
	for _, token := range path {
		var next []foundTemplate
		for _, f := range found {
			if token != "*" {
				if value, ok := rawjson.Lookup(f.raw, token); ok && value.Kind() == '{' || ok && value.Kind() == '[' {
					next = append(next, foundTemplate{append(slices.Clip(f.path), token), value, f.role})
				}
				continue
			}
			for _, name := range membersOf(f.raw) {
				value, _ := rawjson.Lookup(f.raw, name)
				role := name
				if f.raw.Kind() == '[' {
					role = ElementName(value, name)
				}
				next = append(next, foundTemplate{append(slices.Clip(f.path), name), value, role})
			}
		}
		found = next
	}
	return found
}

// membersOf returns the sorted member names of an object, or the indexes of a list.
func membersOf(raw jsontext.Value) []string {
	switch raw.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if json.Unmarshal(raw, &members) == nil {
			return slices.Sorted(maps.Keys(members))
		}
	case '[':
		var elements []jsontext.Value
		if json.Unmarshal(raw, &elements) == nil {
			names := make([]string, len(elements))
			for i := range elements {
				names[i] = strconv.Itoa(i)
			}
			return names
		}
	}
	return nil
}

// draft is a pod on its way from the template to what a controller creates.
type draft struct {
	owner, holder        *manifest.Object // holder has the template
	template             foundTemplate
	ownerName, namespace string
	name, generateName   string
	controller           metav1.OwnerReference
	// labels and annotations come from the template, given from the controller.
	labels, annotations, given map[string]string
	spec                       map[string]jsontext.Value
}

// hash stands in for the controller's hash of a template and has the same form.
func (p *draft) hash() string {
	sum := fnv.New32a()
	_, _ = sum.Write(p.template.raw)
	return rand.SafeEncodeString(strconv.FormatUint(uint64(sum.Sum32()), 10))
}

// label adds a label of the controller, which overrides the template's.
func (p *draft) label(key, value string) { p.given[key] = value }

// controlledBy sets the object that creates the pod.
func (p *draft) controlledBy(apiVersion, kind, name string) {
	p.controller = metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: standInUID, Controller: new(true)}
}

// ownField decodes a field of the owner, if present.
func (p *draft) ownField(into any, tokens ...string) error {
	return decodeField(p.owner, into, tokens...)
}

func decodeField(o *manifest.Object, into any, tokens ...string) error {
	value, ok := rawjson.Lookup(o.Raw, tokens...)
	if !ok || value.Kind() == 'n' {
		return nil
	}
	return o.DecodePart(jsontext.Pointer(jsonpatch.Pointer(tokens...)), value, into)
}

// field decodes a field of the pod's spec, if present.
func (p *draft) field(name string, into any) error {
	value, ok := p.spec[name]
	if !ok || value.Kind() == 'n' {
		return nil
	}
	at := jsontext.Pointer(jsonpatch.Pointer(append(slices.Clip(p.template.path), "spec", name)...))
	return p.holder.DecodePart(at, value, into)
}

func (p *draft) setField(name string, value any) error {
	raw, err := json.Marshal(value, json.Deterministic(true))
	p.spec[name] = raw
	return err
}

// pod returns the pod that the controller would create from the template.
func (t foundTemplate) pod(owner, holder *manifest.Object, namespace string, finish func(*draft) error, guessed bool) (*Pod, error) {
	pointer := jsontext.Pointer(jsonpatch.Pointer(t.path...))
	var body struct {
		Metadata metav1.ObjectMeta         `json:"metadata"`
		Spec     map[string]jsontext.Value `json:"spec"`
	}
	if err := holder.DecodePart(pointer, t.raw, &body); err != nil {
		return nil, err
	}
	where := manifest.FieldPath(jsontext.Pointer(jsonpatch.Pointer(t.path...)))
	if body.Spec == nil {
		return nil, holder.ErrorAt(pointer, fmt.Sprintf("%s: it makes no pods: %s.spec is missing", owner.Title(), where))
	}
	p := draft{
		owner: owner, holder: holder, template: t, ownerName: cmp.Or(owner.Name, owner.GenerateName+standInName), namespace: cmp.Or(owner.Namespace, namespace),
		labels: body.Metadata.Labels, annotations: body.Metadata.Annotations, given: map[string]string{}, spec: body.Spec,
	}
	p.controlledBy(owner.APIVersion, owner.Kind, p.ownerName)
	if err := finish(&p); err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Name: p.name, GenerateName: p.generateName, Namespace: owner.Namespace, Annotations: p.annotations, Labels: maps.Clone(p.labels)}
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	maps.Copy(meta.Labels, p.given)
	rawMeta := map[string]any{}
	for name, value := range map[string]string{"name": meta.Name, "generateName": meta.GenerateName, "namespace": meta.Namespace} {
		if value != "" {
			rawMeta[name] = value
		}
	}
	for name, value := range map[string]map[string]string{"labels": meta.Labels, "annotations": meta.Annotations} {
		if len(value) > 0 {
			rawMeta[name] = value
		}
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": rawMeta, "spec": p.spec}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	pod := holder.Part(pointer, raw, metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, meta)
	pod.MadeBy = owner
	return &Pod{Object: pod, Template: where, Guessed: guessed, Added: p.given, Controller: p.controller}, nil
}

// podsByShape finds pod templates in an object of an unknown kind: members that are
// named template or have metadata, with a spec with containers. The error names
// containers anywhere else, because their pods are unknown.
func podsByShape(o *manifest.Object, namespace string) ([]*Pod, error) {
	var value any
	if err := o.Decode(&value); err != nil {
		return nil, err
	}
	var pods []*Pod
	var loose []string
	var walk func(path []string, value any) error
	walk = func(path []string, value any) error {
		members, _ := value.(map[string]any)
		if len(path) > 0 && isTemplate(path[len(path)-1], members) {
			raw, _ := rawjson.Lookup(o.Raw, path...)
			pod, err := foundTemplate{path: path, raw: raw}.pod(o, o, namespace, finishGenerated, true)
			pods = append(pods, pod)
			return err
		}
		if len(path) > 0 && isContainer(path, members) {
			loose = append(loose, manifest.FieldPath(jsontext.Pointer(jsonpatch.Pointer(path...))))
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if err := walk(append(slices.Clip(path), name), members[name]); err != nil {
				return err
			}
		}
		if elements, ok := value.([]any); ok {
			for i, element := range elements {
				if err := walk(append(slices.Clip(path), strconv.Itoa(i)), element); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := walk(nil, value); err != nil {
		return nil, err
	}
	if len(loose) > 0 {
		return pods, o.ErrorAt("/spec", fmt.Sprintf(
			"%s: %s is a container outside of a pod template: which pods its controller makes of it is not known, and they were not looked at; give such a pod itself", o.Title(), loose[0]))
	}
	return pods, nil
}

func isTemplate(name string, members map[string]any) bool {
	spec, _ := members["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	_, hasMetadata := members["metadata"].(map[string]any)
	return len(containers) > 0 && (hasMetadata || strings.HasSuffix(strings.ToLower(name), "template"))
}

func isContainer(path []string, members map[string]any) bool {
	if _, image := members["image"].(string); !image {
		return false
	}
	name := path[len(path)-1]
	if _, err := strconv.Atoi(name); err == nil && len(path) > 1 {
		name = path[len(path)-2]
		return name == "containers" || name == "initContainers"
	}
	return name == "container"
}
