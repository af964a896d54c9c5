// SPDX-License-Identifier: Apache-2.0

package specification

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kubeflow "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyport "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// Request is a pod as the API server sends it, with defaults and managedFields, and all else that a decision depends on.
type Request struct {
	Pod                *corev1.Pod
	Namespace          string
	NamespaceLabels    map[string]string
	PodDefaults        []kubeflow.PodDefault         // of the namespace
	ClusterPodDefaults []sallyport.ClusterPodDefault // status.currentRevision is the revision of the spec
	Secrets            []metav1.ObjectMeta           // of the namespace
	MeshContainers     []string
	ExcludedContainers []string
	DataConnections    labels.Selector // nil: not connected
}

// Outcome is the pod to store, unless Denied has a finding.
type Outcome struct {
	Pod              *corev1.Pod
	Denied, Warnings []Finding
}

// Finding names an object, an element of the pod or a field, and what became of it.
type Finding struct{ Object, Element, What string }

// object is a PodDefault or a ClusterPodDefault.
type object struct {
	sallyport.ClusterPodDefaultSpec
	meta     metav1.ObjectMeta
	cluster  bool
	revision string
}

// String is the object's name as sallyport.io/poddefaults lists it.
func (o *object) String() string {
	if o.cluster {
		return "cluster/" + o.meta.Name
	}
	return o.meta.Name
}

// mandatory objects are those from which a user cannot exclude a pod.
func (o *object) mandatory() bool { return o.cluster && !o.AllowExclude }

// # Which PodDefaults, and in which order

// inOrder returns the ClusterPodDefaults for the namespace, then the PodDefaults, each by priority and then by name.
func (r Request) inOrder() []*object {
	var ofCluster, ofNamespace []*object
	for _, c := range r.ClusterPodDefaults {
		if c.Spec.NamespaceSelector == nil || matches(c.Spec.NamespaceSelector, r.NamespaceLabels) {
			ofCluster = append(ofCluster, &object{c.Spec, c.ObjectMeta, true, c.Status.CurrentRevision})
		}
	}
	for _, p := range r.PodDefaults {
		ofNamespace = append(ofNamespace, &object{sallyport.ClusterPodDefaultSpec{PodDefaultSpec: p.Spec}, p.ObjectMeta, false, p.Status.CurrentRevision})
	}
	for _, list := range [][]*object{ofCluster, ofNamespace} {
		for _, o := range list {
			if o.ConflictPolicy == kubeflow.ConflictKubeflow { // the schema's default, which objects from files need not have
				o.ConflictPolicy = ""
			}
		}
		slices.SortFunc(list, func(a, b *object) int {
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.meta.Name, b.meta.Name))
		})
	}
	return append(ofCluster, ofNamespace...)
}

func matches(selector *metav1.LabelSelector, has map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(has))
}

// Apply decides about a pod.
func Apply(r Request) Outcome {
	d := decision{Request: r, sent: sent(r.Pod)}
	all := only(r.inOrder(), d.mayApply)
	// Only the labels that the pod was sent with select,
	selected := only(all, func(o *object) bool { return d.applied(o) || matches(&o.Selector, d.sentLabels(all)) })
	f := d.decide(selected)
	if len(selected) == 0 {
		return Outcome{Pod: f.pod}
	}
	// but those that the pod would be stored with select mandatory objects too.
	byStored := func(o *object) bool {
		return slices.Contains(selected, o) || o.mandatory() && matches(&o.Selector, f.pod.Labels)
	}
	if more := only(all, byStored); len(more) > len(selected) {
		selected, f = more, d.decide(more)
		for _, o := range only(all, byStored) {
			if !slices.Contains(selected, o) {
				f.deny(o, "Labels", "selected by labels of objects that only such labels select")
			}
		}
	}
	d.carry(f, selected, only(all, func(o *object) bool { return matches(&o.Selector, f.pod.Labels) }))
	return Outcome{f.pod, f.denied, f.warnings}
}

// mayApply is false for mirror pods, and for pods that are excluded.
func (d decision) mayApply(o *object) bool {
	_, mirror := d.Pod.Annotations[corev1.MirrorPodAnnotationKey]
	return !mirror && (o.mandatory() || d.Pod.Annotations["poddefault.admission.kubeflow.org/exclude"] != "true")
}

// # Conflicts

// decision is about one pod.
type decision struct {
	Request
	sent    map[string]bool    // what came with the request
	skipped map[*object]string // objects, and why
}

// decide applies the selected objects. What those in mode Audit would have led to is tried on the side, all together.
func (d decision) decide(selected []*object) *fold {
	result, trial := d.settle(only(selected, func(o *object) bool { return o.Mode != kubeflow.ModeAudit })), d.settle(selected)
	for _, o := range selected {
		conflicts := slices.ContainsFunc(slices.Concat(trial.denied, trial.warnings), func(f Finding) bool { return f.Object == o.String() })
		if o.Mode == kubeflow.ModeAudit {
			result.warn(o, "Mode", fmt.Sprintf("audited, with a conflict: %t", conflicts))
		}
	}
	return result
}

// settle tries the objects, and tries the rest anew without one that Skip, or a rule of the finished pod, drops.
func (d decision) settle(objects []*object) *fold {
	d.skipped = map[*object]string{}
	var warnings []Finding
	drop := func(o *object, what, element string) {
		warnings = append(warnings, Finding{o.String(), element, what})
		objects = only(objects, func(other *object) bool { return other != o })
	}
	for _, o := range only(objects, d.recordedSkip) {
		d.skipped[o] = ""
		drop(o, "skipped", "")
	}
	for selected := objects; ; {
		for i := 0; i < len(objects); i++ {
			if o := objects[i]; d.cannotWork(o, objects) {
				drop(o, "cannot work", "")
				i = -1 // others may have relied on it
			}
		}
		f := d.fold(objects)
		if d.check(f, objects); f.dropped == nil {
			d.alternatives(f, selected)
			f.warnings = append(warnings, f.warnings...)
			return f
		}
		d.skipped[f.dropped] = f.reason
		drop(f.dropped, "skipped", f.reason)
	}
}

// fold is a pod to which objects are applied, one after the other.
type fold struct {
	decision
	pod              *corev1.Pod
	objects          []*object
	brought          map[string]bool          // names of the containers of all objects, known from the start
	added            map[string]*object       // containers, by name, and who has added them
	from             map[string]*object       // elements, and the last object that wanted them as they are
	passed           map[*object]bool         // objects that reach nothing
	agreed           map[string]bool          // elements that an object wanted as the pod has them
	originals        map[string]reflect.Value // elements, as the pod has them
	denied, warnings []Finding
	dropped          *object // by Skip, for the reason
	reason           string
}

// turn is one object being tried on the pod as the ones before have left it.
type turn struct {
	*fold
	*object
	spec *kubeflow.PodDefaultSpec // with the pod's values for placeholders
}

func (d decision) fold(objects []*object) *fold {
	f := &fold{decision: d, pod: d.Pod.DeepCopy(), objects: objects, brought: map[string]bool{}, added: map[string]*object{}, from: map[string]*object{}, passed: map[*object]bool{}, agreed: map[string]bool{}, originals: map[string]reflect.Value{}}
	var turns []*turn
	for _, o := range objects {
		for _, c := range slices.Concat(o.InitContainers, o.Sidecars) {
			f.brought[c.Name] = true
		}
	}
	for _, o := range objects { // containers first, because an object may select one that a later object brings
		t := &turn{f, o, o.PodDefaultSpec.DeepCopy()}
		if f.dropped == nil && t.substitute() {
			t.merge("Labels", "", &f.pod.Labels, t.spec.Labels)
			t.addContainers()
			turns = append(turns, t)
		}
	}
	for _, t := range turns {
		if f.dropped == nil {
			t.connect()
			t.fields()
		}
	}
	f.finish()
	return f
}

// wins reports whether an object's element goes where another one is, which may be the same, or none.
func (t *turn) wins(path, container string, same, free bool) bool {
	if same || free {
		e := element(path, container)
		t.from[e], t.agreed[e] = t.object, t.agreed[e] || same && t.from[e] == nil
		return !same
	}
	ofInjected := container != "" && t.brought[container] && t.from[element(path, container)] == nil // what it defines itself
	label := strings.HasPrefix(path, "Labels ")
	return t.conflict(path, container, !ofInjected && !label, !label)
}

// conflict decides by the object's policy, then and there, whether its element replaces the one that is there. What could not
// replace it when the pod was created did not.
func (t *turn) conflict(path, container string, replaceable, everReplaceable bool) bool {
	e, field, policy := element(path, container), strings.Fields(path)[0], t.ConflictPolicy
	earlier, ofPod := t.from[e], t.added[container] == nil && (t.from[e] == nil || t.agreed[e])
	switch {
	case policy == kubeflow.ConflictOverride && replaceable && ofPod && t.replacedSince(e, field):
	case policy == "" && slices.Contains(lastWins, field), policy == kubeflow.ConflictOverride && replaceable:
		t.from[e], t.agreed[e] = t.object, false
		if policy != "" || earlier != nil {
			t.warn(t.object, e, "replaced")
		}
		return true
	case policy == "" && slices.Contains(firstWins, field):
		if earlier != nil {
			t.warn(t.object, e, "kept")
		}
	case policy == kubeflow.ConflictKeepPod, policy == kubeflow.ConflictOverride, t.older(t.object) && ofPod:
		t.warn(t.object, e, "kept")
	case everReplaceable && t.replacedSince(e, field):
	case policy == kubeflow.ConflictSkip:
		t.drop(t.object, e)
	default:
		t.deny(t.object, e, "conflict")
	}
	return false
}

// replacedSince reports whether the pod was injected before, and a later object wants what is there, and has replaced the
// value of this one.
func (t *turn) replacedSince(element, field string) bool {
	later := t.fold.objects[slices.Index(t.fold.objects, t.object)+1:]
	return t.marked(t.object) && slices.ContainsFunc(later, func(o *object) bool {
		replaces := o.ConflictPolicy == kubeflow.ConflictOverride || o.ConflictPolicy == "" && slices.Contains(lastWins, field)
		return replaces && t.decision.fold([]*object{o}).agreed[element]
	})
}

func element(path, container string) string {
	if container != "" {
		path += " of container " + container
	}
	return path
}

func (f *fold) deny(o *object, element, what string) {
	f.denied = append(f.denied, Finding{o.String(), element, what})
}

func (f *fold) warn(o *object, element, what string) {
	f.warnings = append(f.warnings, Finding{o.String(), element, what})
}

func (f *fold) drop(o *object, reason string) {
	if f.dropped == nil {
		f.dropped, f.reason = o, reason
	}
}

// # Alternatives

// alternatives denies a pod that selects two objects of a group. One that is skipped, with and without the others, does not count.
func (d decision) alternatives(f *fold, selected []*object) {
	for _, o := range selected {
		others := func(other *object) bool {
			return other != o && o.ExclusiveGroup != "" && other.ExclusiveGroup == o.ExclusiveGroup
		}
		applies := func(member *object) bool {
			alone := only(selected, func(other *object) bool { return other == member || other.ExclusiveGroup != o.ExclusiveGroup })
			return slices.Contains(f.objects, member) || slices.Contains(d.settle(alone).objects, member)
		}
		if slices.ContainsFunc(only(selected, others), applies) && applies(o) {
			f.deny(o, "ExclusiveGroup", o.ExclusiveGroup)
		}
	}
}

// # Data connections

// connect adds the Secrets that the object selects, by name.
func (t *turn) connect() {
	for _, name := range t.secrets(t.spec.EnvFromSecretSelector) {
		t.spec.EnvFrom = append(t.spec.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: new(true)}})
	}
	for _, name := range t.secrets(t.spec.VolumesFromSecretSelector) {
		volume, path := "connection-"+name, t.spec.SecretsMountPath+"/"+name
		source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: new(true)}}
		t.spec.Volumes = append(t.spec.Volumes, corev1.Volume{Name: volume, VolumeSource: source})
		t.spec.VolumeMounts = append(t.spec.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path, ReadOnly: true})
	}
}

func (r Request) secrets(selector *metav1.LabelSelector) (names []string) {
	for _, s := range r.Secrets {
		if selector != nil && r.DataConnections.Matches(labels.Set(s.Labels)) && matches(selector, s.Labels) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}
