// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	corecmp "cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/test/cases"
)

// The generators draw from few names, so that pods and PodDefaults collide often.

var drawName = rapid.SampledFrom([]string{"a", "b", "c"})

func drawEnv(t *rapid.T) corev1.EnvVar {
	env := corev1.EnvVar{Name: drawName.Draw(t, "env name")}
	switch rapid.IntRange(0, 3).Draw(t, "env source") {
	case 0:
		env.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}
	case 1:
		env.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: drawName.Draw(t, "key"),
		}}
	default:
		env.Value = rapid.SampledFrom([]string{"", "1"}).Draw(t, "value")
	}
	return env
}

func drawVolume(t *rapid.T) corev1.Volume {
	volume := corev1.Volume{Name: drawName.Draw(t, "volume name")}
	switch rapid.IntRange(0, 2).Draw(t, "volume source") {
	case 0:
		volume.Secret = &corev1.SecretVolumeSource{SecretName: "s"}
	case 1:
		volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}
	default:
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	return volume
}

func drawMount(t *rapid.T) corev1.VolumeMount {
	return corev1.VolumeMount{
		Name: drawName.Draw(t, "mounted volume"), MountPath: "/" + drawName.Draw(t, "path"),
		ReadOnly: rapid.Bool().Draw(t, "read only"),
	}
}

func drawToleration(t *rapid.T) corev1.Toleration {
	return corev1.Toleration{
		Key: drawName.Draw(t, "taint"), Operator: rapid.SampledFrom([]corev1.TolerationOperator{"", "Equal"}).Draw(t, "operator"),
		Value: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "taint value"), Effect: corev1.TaintEffectNoSchedule,
	}
}

func drawMap(t *rapid.T, label string) map[string]string {
	return rapid.MapOfN(drawName, rapid.SampledFrom([]string{"1", "2"}), 0, 2).Draw(t, label)
}

// drawList draws elements with distinct keys, as Kubernetes requires.
func drawList[T any](t *rapid.T, what string, draw func(*rapid.T) T, key func(T) string) []T {
	list := rapid.SliceOfNDistinct(rapid.Custom(draw), 0, 3, key).Draw(t, what)
	if len(list) == 0 {
		return nil
	}
	return list
}

func drawContainer(name string) func(*rapid.T) corev1.Container {
	return func(t *rapid.T) corev1.Container {
		return corev1.Container{
			Name: name, Image: rapid.SampledFrom([]string{"i", "j"}).Draw(t, "image"),
			Env:          drawList(t, "container env", drawEnv, envName),
			VolumeMounts: drawList(t, "container mounts", drawMount, mountPath),
		}
	}
}

func envName(env corev1.EnvVar) string { return env.Name }

func mountPath(mount corev1.VolumeMount) string { return mount.MountPath }

func volumeName(volume corev1.Volume) string { return volume.Name }

func taint(t corev1.Toleration) string { return t.Key + t.Value }

func drawPod(t *rapid.T) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: drawMap(t, "pod labels"), Annotations: drawMap(t, "pod annotations")},
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
		pod.Spec.Containers = append(pod.Spec.Containers, drawContainer(fmt.Sprintf("main-%d", i))(t))
	}
	if rapid.Bool().Draw(t, "a sidecar is there") {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "side-a", Image: "i"})
	}
	pod.Spec.Volumes = drawList(t, "pod volumes", drawVolume, volumeName)
	pod.Spec.Tolerations = drawList(t, "pod tolerations", drawToleration, taint)
	for _, mark := range []string{meta.Mark("pd-0"), meta.Mark("pd-1"), meta.ClusterMark("pd-0")} {
		if sometimes(t, "was injected before") {
			if pod.Annotations == nil {
				pod.Annotations = map[string]string{}
			}
			if sometimes(t, "records revisions") {
				pod.Annotations[meta.RevisionsAnnotation] = rapid.SampledFrom([]string{"x", "pd-0@" + strings.Repeat("0", plan.RevisionSize), "a@1,,cluster/pd-0@" + strings.Repeat("a", plan.RevisionSize)}).Draw(t, "revisions")
			}
			pod.Annotations[mark] = rapid.SampledFrom([]string{"1", "7", "8"}).Draw(t, "version that injected it")
		}
	}
	return pod
}

func drawPodDefault(name string) func(*rapid.T) *kubeflowv1alpha1.PodDefault {
	return func(t *rapid.T) *kubeflowv1alpha1.PodDefault {
		pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: name, ResourceVersion: "7"}}
		spec := &pd.Spec
		spec.Selector.MatchLabels = drawMap(t, "selector")
		spec.Env = drawList(t, "env", drawEnv, envName)
		spec.Volumes = drawList(t, "volumes", drawVolume, volumeName)
		spec.VolumeMounts = drawList(t, "mounts", drawMount, mountPath)
		spec.Tolerations = drawList(t, "tolerations", drawToleration, taint)
		spec.Labels = drawMap(t, "labels")
		spec.Annotations = drawMap(t, "annotations")
		if rapid.Bool().Draw(t, "has a sidecar") {
			spec.Sidecars = []corev1.Container{drawContainer("side-" + drawName.Draw(t, "sidecar"))(t)}
		}
		if rapid.Bool().Draw(t, "has an init container") {
			spec.InitContainers = []corev1.Container{{Name: "init-" + drawName.Draw(t, "init container"), Image: "i"}}
		}
		spec.ServiceAccountName = rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "service account")
		if rapid.Bool().Draw(t, "has args") {
			spec.Args = []string{name}
		}
		return pd
	}
}

func drawPodDefaults(t *rapid.T) []*kubeflowv1alpha1.PodDefault {
	var pds []*kubeflowv1alpha1.PodDefault
	for i := range rapid.IntRange(0, 3).Draw(t, "PodDefaults") {
		pds = append(pds, drawPodDefault(fmt.Sprintf("pd-%d", i))(t))
	}
	return pds
}

// rapidTB lets the helpers fail a draw of rapid.
type rapidTB struct {
	testing.TB
	rapid *rapid.T
}

func (tb rapidTB) Helper() {}

func (tb rapidTB) Fatal(args ...any) { tb.rapid.Fatal(args...) }

func (tb rapidTB) Fatalf(format string, args ...any) { tb.rapid.Fatalf(format, args...) }

func (tb rapidTB) Errorf(format string, args ...any) { tb.rapid.Errorf(format, args...) }

// TestSecondPassIsEmpty runs the webhook on its own result, unchanged and with the API
// server's defaults.
func TestSecondPassIsEmpty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tb := rapidTB{t, rt}
		pod, index := drawRichPod(rt), indexOfCompiled(drawObjects(rt))
		pod.ManagedFields = sentAs(tb, pod)
		raw := encodeJSON(tb, pod)
		resp := handleFrom(tb, raw, index)
		if !resp.Allowed {
			return
		}
		after := cases.Apply(tb, raw, resp)
		cases.CheckOrigins(tb, after, resp)
		for name, again := range map[string][]byte{"as it is": after, "defaulted": defaulted(tb, after)} {
			second := handleFrom(tb, again, index)
			if (!second.Allowed || len(second.Patch) > 0) && !foundItsVolume(resp.Warnings, second.Warnings) {
				rt.Fatalf("%s: %+v %s\nof %s", name, second.Status, second.Patch.AppendJSON(nil), again)
			}
		}
	})
}

// sentAs returns managedFields with the labels and annotations of a pod, as the API server computes them
// for a pod that is sent.
func sentAs(tb testing.TB, pod *corev1.Pod) []metav1.ManagedFieldsEntry {
	tb.Helper()
	owned := map[string]map[string]struct{}{"f:annotations": {}, "f:labels": {}}
	for key := range pod.Annotations {
		owned["f:annotations"]["f:"+key] = struct{}{}
	}
	for key := range pod.Labels {
		owned["f:labels"]["f:"+key] = struct{}{}
	}
	fields := encodeJSON(tb, map[string]any{"f:metadata": owned})
	return []metav1.ManagedFieldsEntry{{Manager: "user", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields))}}
}

// foundItsVolume reports whether an object that had been left out for want of a volume is not
// left out any more. Every call tries it again, because other webhooks bring volumes, too. So
// with the labels that the first call left in the pod, it may select an object with its volume
// (one of 100,000 drawn cases).
func foundItsVolume(first, second []string) bool {
	return slices.ContainsFunc(first, func(warning string) bool {
		return strings.Contains(warning, "a volume that it mounts exists neither") && !slices.Contains(second, warning)
	})
}

// TestOrderOfObjectsDoesNotMatter shuffles the objects. The answer must have the same
// bytes.
func TestOrderOfObjectsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tb := rapidTB{t, rt}
		pod, objects := drawRichPod(rt), drawObjects(rt)
		raw := encodeJSON(tb, pod)
		first := handleFrom(tb, raw, indexOfCompiled(objects))
		second := handleFrom(tb, raw, indexOfCompiled(rapid.Permutation(objects).Draw(rt, "other order")))
		if diff := cmp.Diff(first, second); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestUnknownFieldsSurvive adds unknown fields throughout the pod. All of them must
// stay in place, and nothing else may differ. An overridden value loses its unknown
// fields, so no object overrides here.
func TestUnknownFieldsSurvive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tb := rapidTB{t, rt}
		pod, objects := drawRichPod(rt), drawObjects(rt)
		for _, c := range objects {
			if c.Policy == kubeflowv1alpha1.ConflictOverride {
				c.Policy = kubeflowv1alpha1.ConflictKeepPod
			}
		}
		index := indexOfCompiled(objects)
		plain := encodeJSON(tb, pod)
		resp := handleFrom(tb, plain, index)
		seed := rapid.Uint64().Draw(rt, "seed")
		sprinkled := sprinkle(tb, plain, rand.New(rand.NewPCG(seed, 1)))
		other := handleFrom(tb, sprinkled, index)
		if resp.Allowed != other.Allowed {
			rt.Fatalf("unknown fields changed the decision: %+v", other.Status)
		}
		want, wantUnknown := strip(tb, cases.Apply(tb, plain, resp))
		got, gotUnknown := strip(tb, cases.Apply(tb, sprinkled, other))
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
		_, before := strip(tb, sprinkled)
		// A multiplied node term has its unknown fields in each copy.
		if wantUnknown != 0 || gotUnknown < before {
			rt.Fatalf("of %d unknown fields %d are left", before, gotUnknown)
		}
	})
}

// TestThousandVariablesAreOneOperationAContainer keeps the number of operations small,
// because the API server pays for each.
func TestThousandVariablesAreOneOperationAContainer(t *testing.T) {
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: "many", ResourceVersion: "1"}}
	for i := range 1000 {
		pd.Spec.Env = append(pd.Spec.Env, corev1.EnvVar{Name: fmt.Sprintf("V%d", i), Value: "1"})
	}
	raw := []byte(`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","env":[{"name":"OWN","x":1}]},{"name":"b"}]}}`)
	resp := handle(t, raw, pd)
	operations := 0
	for _, op := range resp.Patch {
		if bytes.Contains([]byte(op.Path), []byte("/env")) {
			operations++
		}
	}
	if operations != 2 {
		t.Errorf("%d operations", operations)
	}
	if after := cases.Apply(t, raw, resp); !bytes.Contains(after, []byte(`{"name":"OWN","x":1}`)) {
		t.Error("the variable that was there was rewritten")
	}
}

func encodeJSON(t testing.TB, value any) []byte {
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// defaulted applies the API server's defaults for the drawn fields.
func defaulted(t testing.TB, raw []byte) []byte {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		t.Fatal(err)
	}
	mode := int32(420)
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.Secret != nil {
			volume.Secret.DefaultMode = &mode
		}
		if volume.ConfigMap != nil {
			volume.ConfigMap.DefaultMode = &mode
		}
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			containers[i].TerminationMessagePath = "/dev/termination-log"
			containers[i].ImagePullPolicy = corev1.PullAlways
			containers[i].TerminationMessagePolicy = corecmp.Or(containers[i].TerminationMessagePolicy, corev1.TerminationMessageReadFile)
			for _, env := range containers[i].Env {
				if env.ValueFrom != nil && env.ValueFrom.FieldRef != nil {
					env.ValueFrom.FieldRef.APIVersion = "v1"
				}
			}
		}
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = "default"
	}
	if pod.Spec.SecurityContext == nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	}
	pod.Spec.SchedulerName = corecmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
	pod.Spec.DNSPolicy = corecmp.Or(pod.Spec.DNSPolicy, corev1.DNSClusterFirst)
	if pod.Spec.EnableServiceLinks == nil {
		pod.Spec.EnableServiceLinks = new(true)
	}
	if pod.Spec.PriorityClassName != "" { // the Priority plugin
		pod.Spec.Priority, pod.Spec.PreemptionPolicy = new(int32(7)), new(corev1.PreemptLowerPriority)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for j := range containers[i].Ports {
				containers[i].Ports[j].Protocol = corev1.ProtocolTCP
			}
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, ok := r.Requests[name]; !ok {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = limit
				}
			}
		}
	}
	return encodeJSON(t, pod)
}

const unknownPrefix = "futureField"

// userMap has the names of maps with user-defined keys.
var userMap = map[string]bool{"labels": true, "annotations": true, "nodeSelector": true, "requests": true, "limits": true}

// sprinkle adds unknown fields to some of the objects of a document.
func sprinkle(t testing.TB, raw []byte, random *rand.Rand) []byte {
	tree := plan.Decode(raw)
	n := 0
	var visit func(any, string)
	visit = func(value any, path string) {
		switch value := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(keys(value)) {
				visit(value[name], path+"/"+name)
			}
			if !userMap[path[strings.LastIndexByte(path, '/')+1:]] && random.IntN(2) == 0 {
				n++
				value[fmt.Sprintf("%s%d", unknownPrefix, n)] = json.Number("9007199254740993")
			}
		case []any:
			for i, element := range value {
				visit(element, fmt.Sprintf("%s/%d", path, i))
			}
		}
	}
	visit(tree, "")
	return encodeJSON(t, tree)
}

func keys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// strip removes and counts the unknown fields.
func strip(t testing.TB, raw []byte) (tree any, unknown int) {
	t.Helper()
	tree = plan.Decode(raw)
	var visit func(any)
	visit = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for name, below := range value {
				if bytes.HasPrefix([]byte(name), []byte(unknownPrefix)) {
					delete(value, name)
					unknown++
					continue
				}
				visit(below)
			}
		case []any:
			for _, element := range value {
				visit(element)
			}
		}
	}
	visit(tree)
	return tree, unknown
}
