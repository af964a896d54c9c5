// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
	"github.com/sallyport-io/sallyport/test/cases"
)

// drawMany draws mostly few, and occasionally as many as an API server accepts.
func drawMany(t *rapid.T, what string, most int) int {
	return rapid.SampledFrom([]int{0, 1, 3, most / 50, most / 5, most}).Draw(t, what)
}

// drawLarge draws a pod and PodDefaults up to the limits of an API server: 3 MiB per
// request, and 1.5 MiB per object in etcd.
func drawLarge(t *rapid.T) (pod []byte, objects []*kubeflowv1alpha1.PodDefault) {
	containers := max(1, drawMany(t, "containers", 1000))
	env := drawMany(t, "variables of a container", 2_000_000/containers/40)
	mounts := drawMany(t, "mounts of a container", 500_000/containers/40)
	spec := ""
	if n := drawMany(t, "tolerations", 5000); n > 0 {
		spec += `"tolerations":[` + times(n, `{"key":"k%d","operator":"Exists"}`) + `],`
	}
	if n := drawMany(t, "node terms", 2000); n > 0 {
		spec += `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` +
			times(n, `{"matchExpressions":[{"key":"p","operator":"In","values":["%d"]}]}`) + `]}}},`
	}
	container := `{"name":"c%d","env":[` + times(env, `{"name":"P%d","value":"v"}`) + `],"volumeMounts":[` + times(mounts, `{"name":"m","mountPath":"/p%d"}`) + `]}`
	pod = rawPod(spec, container, containers)

	left := 20 << 20 // of all objects: a namespace full of them
	for i := range rapid.IntRange(1, 40).Draw(t, "PodDefaults") {
		pd := hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
			s.ConflictPolicy = rapid.SampledFrom([]kubeflowv1alpha1.ConflictPolicy{"", kubeflowv1alpha1.ConflictDeny, kubeflowv1alpha1.ConflictKeepPod,
				kubeflowv1alpha1.ConflictOverride, kubeflowv1alpha1.ConflictSkip}).Draw(t, "policy")
			s.Priority = rapid.Int32Range(-1, 1).Draw(t, "priority")
			n := drawMany(t, "variables", 1500)
			size := 1
			if n > 0 {
				size = max(1, min(drawMany(t, "bytes of a variable", 50_000), 900_000/n, left/n))
			}
			left -= n * size
			s.Env = variables(n, size, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "value"))
			for j := range drawMany(t, "mounts", 1500) {
				s.VolumeMounts = append(s.VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: fmt.Sprint("/", i%2, j)})
			}
			if rapid.Bool().Draw(t, "a volume for them") {
				s.Volumes = []corev1.Volume{{Name: "v"}}
			}
			if n := drawMany(t, "node terms", 100); n > 0 {
				s.Affinity = nodeTermsOf(n, fmt.Sprint("k", i))
			}
			for j := range drawMany(t, "sidecars", 100) {
				s.Sidecars = append(s.Sidecars, corev1.Container{Name: fmt.Sprintf("s%d-%d", i, j), Image: "i"})
			}
			for j := range drawMany(t, "tolerations", 1500) {
				s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: fmt.Sprint("t", j), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
			}
			if rapid.Bool().Draw(t, "one label picks the next") {
				s.Labels = map[string]string{fmt.Sprint("l", i+1): "x"}
				s.Selector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "l" + strconv.Itoa(i), Operator: metav1.LabelSelectorOpExists}}}
				if i == 0 {
					s.Selector = metav1.LabelSelector{}
				}
			}
		})
		objects = append(objects, pd)
	}
	return pod, objects
}

// TestWhatAPodGetsIsBoundedWhateverIsDrawn checks that no pod and no PodDefaults within
// the API server's limits make a review too expensive. The answer is small. It is
// either a patch that leaves nothing to do or a denial that names a PodDefault, and it
// allocates at most [maxAllocated].
//
// Cases are large, so there are few: a two-hundredth of -rapid.checks, but at least
// five.
func TestWhatAPodGetsIsBoundedWhateverIsDrawn(t *testing.T) {
	draws := 5
	if checks, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String()); err == nil {
		draws = max(draws, checks/200)
	}
	type drawn struct {
		pod     []byte
		objects []*kubeflowv1alpha1.PodDefault
	}
	large := rapid.Custom(func(t *rapid.T) drawn {
		pod, objects := drawLarge(t)
		return drawn{pod, objects}
	})
	denied := 0
	for seed := range draws {
		d := large.Example(seed)
		index := indexOf(d.objects...)
		var resp *admission.Response
		if took := allocated(func() { resp = handleFrom(t, d.pod, index) }); took > maxAllocated {
			t.Errorf("case %d: %d bytes allocated for %d bytes of pod", seed, took, len(d.pod))
		}
		if size := len(resp.Patch.AppendJSON(nil)); size > meta.MaxPod+meta.MaxPod/2 {
			t.Errorf("case %d: a patch of %d bytes", seed, size)
		}
		if !resp.Allowed {
			denied++
			if !strings.Contains(resp.Status.Message, "PodDefault") || len(resp.Status.Message) > 16<<10 {
				t.Errorf("case %d: denied with %.1000s", seed, resp.Status.Message)
			}
			continue
		}
		patched, err := replay.WithManagedFields(cases.Apply(t, d.pod, resp), d.pod)
		if err != nil {
			t.Fatal(err)
		}
		if again := handleFrom(t, patched, index); again.Allowed && !bytes.Equal(cases.Apply(t, patched, again), patched) {
			t.Errorf("case %d: a second pass changes it again", seed)
		} else if !again.Allowed {
			t.Errorf("case %d: a second pass denies it: %.1000s", seed, again.Status.Message)
		}
	}
	t.Logf("%d of %d draws are denied", denied, draws)
}
