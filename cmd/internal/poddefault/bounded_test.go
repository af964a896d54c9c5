// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
)

// A hostile case is an attack by someone who may write PodDefaults or reaches the port.
// Want is part of the message of a denial, or empty if the pod is admitted.
type hostile struct {
	name   string
	make   func(n int) (pod []byte, objects []*kubeflowv1alpha1.PodDefault)
	n      int
	want   string
	within int // as many, and twice as many, are within the limits; 0: it says nothing
}

// crowd is a number of pod labels for which no objects are looked up.
const crowd = 200_000

func hostileObject(name string, change func(*kubeflowv1alpha1.PodDefaultSpec)) *kubeflowv1alpha1.PodDefault {
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: name, ResourceVersion: "1"}}
	change(&pd.Spec)
	return pd
}

// rawPod returns a pod with copies of a container; %d is its number.
func rawPod(spec, container string, containers int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"metadata":{"name":"p","labels":{"a":"b"}},"spec":{` + spec + `"containers":[`)
	for i := range containers {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(container, "%d", fmt.Sprint(i)))
	}
	b.WriteString("]}}")
	return b.Bytes()
}

func times(n int, text string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(text, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

func variables(n, size int, value string) (env []corev1.EnvVar) {
	for i := range n {
		env = append(env, corev1.EnvVar{Name: fmt.Sprint("V", i), Value: strings.Repeat(value, size)})
	}
	return env
}

func nodeTermsOf(n int, prefix string) *corev1.Affinity {
	required := &corev1.NodeSelector{}
	for i := range n {
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: prefix, Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprint(i)}},
		}})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
}

const podTerms = `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[%s]}}},`

func withTerms(n int) string {
	return strings.Replace(podTerms, "%s", times(n, `{"matchExpressions":[{"key":"pod","operator":"In","values":["%d"]}]}`), 1)
}

var tiny = []*kubeflowv1alpha1.PodDefault{hostileObject("tiny", func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(1, 1, "x") })}

var hostiles = []hostile{
	{"150,000 containers and a tiny PodDefault", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		return rawPod("", `{"name":"c%d"}`, n), tiny
	}, 150_000, "more than 1000 containers", 400},
	{"large variables in many containers", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("large", func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(20, 50<<10, "x") })
		return rawPod("", `{"name":"c%d"}`, n), []*kubeflowv1alpha1.PodDefault{pd}
	}, 1000, "PodDefault team-a/large cannot be applied to pod p: env of container c3: with it the pod would have more than 3 MiB", 0},
	{"an object with more node terms than it may have", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("terms", func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Affinity = nodeTermsOf(n, "object") })
		return rawPod(withTerms(n), `{"name":"c%d"}`, 1), []*kubeflowv1alpha1.PodDefault{pd}
	}, 2000, "", 0},
	{"node terms of the pod alone", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("terms", func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Affinity = nodeTermsOf(100, "object") })
		return rawPod(withTerms(n), `{"name":"c%d"}`, 1), []*kubeflowv1alpha1.PodDefault{pd}
	}, 2000, "PodDefault team-a/terms: required node affinity would have more than 100 terms", 0},
	{"as many node terms as there may be, of both", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("terms", func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Affinity = nodeTermsOf(n, "object") })
		return rawPod(withTerms(n), `{"name":"c%d"}`, 1), []*kubeflowv1alpha1.PodDefault{pd}
	}, 100, "PodDefault team-a/terms: required node affinity would have more than 100 terms", 0},
	{"node terms of many expressions", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		expressions := times(n, `{"key":"pod%d","operator":"In","values":["1"]}`)
		pd := hostileObject("terms", func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Affinity = nodeTermsOf(10, "object") })
		for i := range pd.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			term := &pd.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i]
			for j := range n {
				term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: fmt.Sprint("o", j), Operator: corev1.NodeSelectorOpIn, Values: []string{"1"}})
			}
		}
		return rawPod(strings.Replace(podTerms, "%s", times(10, `{"matchExpressions":[`+expressions+`]}`), 1), `{"name":"c%d"}`, 1), []*kubeflowv1alpha1.PodDefault{pd}
	}, 1000, "PodDefault team-a/terms cannot be applied to pod p: the pod: merging it takes more comparisons", 50},
	{"30 PodDefaults of 80 KB with Override", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range n {
			pds = append(pds, hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
				s.ConflictPolicy = kubeflowv1alpha1.ConflictOverride
				s.Env = variables(1500, 1, fmt.Sprint(i))
			}))
		}
		return rawPod("", `{"name":"c%d"}`, 5), pds
	}, 30, "merging it takes more comparisons", 0},
	{"variables that one object after the other overrides", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range 10 {
			pds = append(pds, hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
				s.ConflictPolicy = kubeflowv1alpha1.ConflictOverride
				s.Env = variables(n, 1, fmt.Sprint(i))
			}))
		}
		return rawPod("", `{"name":"c%d"}`, 1), pds
	}, 1000, "", 250},
	{"30 PodDefaults of 80 KB that disagree", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range n {
			pds = append(pds, hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(1500, 1, fmt.Sprint(i)) }))
		}
		return rawPod("", `{"name":"c%d"}`, 5), pds
	}, 30, "PodDefaults pd0 and pd1 both set env V0 of container c0", 0},
	{"30 PodDefaults of 80 KB that disagree and give way", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range n {
			pds = append(pds, hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
				s.ConflictPolicy = kubeflowv1alpha1.ConflictKeepPod
				s.Env = variables(1500, 1, fmt.Sprint(i))
			}))
		}
		return rawPod("", `{"name":"c%d"}`, 5), pds
	}, 30, "merging it takes more comparisons", 0},
	{"mounts without their volumes", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("mounts", func(s *kubeflowv1alpha1.PodDefaultSpec) {
			for i := range n {
				s.VolumeMounts = append(s.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprint("v", i), MountPath: fmt.Sprint("/v", i)})
			}
		})
		return rawPod(`"volumes":[`+times(n, `{"name":"v%d","emptyDir":{}}`)+`],`, `{"name":"c%d"}`, 10), []*kubeflowv1alpha1.PodDefault{pd}
	}, 2000, "more than 20000 elements in the pod's lists", 500},
	{"mounts of the volumes of others", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range 200 {
			pds = append(pds, hostileObject(fmt.Sprintf("pd%03d", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
				for j := range n / 200 {
					s.VolumeMounts = append(s.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprintf("v%d-%d", i+1, j), MountPath: fmt.Sprintf("/v%d-%d", i, j)})
					s.Volumes = append(s.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d-%d", i, j)})
				}
			}))
		}
		return rawPod("", `{"name":"c%d"}`, 1), pds
	}, 2000, "", 400},
	{"many PodDefaults", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range n {
			pds = append(pds, hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = []corev1.EnvVar{{Name: fmt.Sprint("E", i)}} }))
		}
		return rawPod("", `{"name":"c%d"}`, 100), pds
	}, 3000, "3000 of them select it, and at most 500 may", 100},
	{"node selectors", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("selectors", func(s *kubeflowv1alpha1.PodDefaultSpec) {
			s.NodeSelector = map[string]string{}
			for i := range n {
				s.NodeSelector[fmt.Sprint("k", i)] = "x"
			}
		})
		return rawPod(`"nodeSelector":{`+times(20000, `"p%d":"y"`)+`},`, `{"name":"c%d"}`, 1), []*kubeflowv1alpha1.PodDefault{pd}
	}, 2000, "", 500},
	{"resources and what a LimitRange set", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("resources", func(s *kubeflowv1alpha1.PodDefaultSpec) {
			s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{}}
			for i := range n / 2 {
				s.Resources.Limits[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
			}
		})
		raw := rawPod("", `{"name":"c%d","resources":{"limits":{`+times(50, `"example.com/r%d":"2"`)+`}}}`, 500)
		annotation := `"annotations":{"kubernetes.io/limit-ranger":"LimitRanger plugin set: ` + strings.Repeat("cpu request for container x; ", 5000) + `"},"labels"`
		return bytes.Replace(raw, []byte(`"labels"`), []byte(annotation), 1), []*kubeflowv1alpha1.PodDefault{pd}
	}, 200, "more than 20000 elements in the pod's lists", 40},
	{"a large variable that each container has otherwise", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("large", func(s *kubeflowv1alpha1.PodDefaultSpec) {
			s.ConflictPolicy = kubeflowv1alpha1.ConflictKeepPod
			s.Env = variables(20, 50<<10, "x")
		})
		return rawPod("", `{"name":"c%d","env":[`+times(20, `{"name":"V%d","value":"y"}`)+`]}`, n), []*kubeflowv1alpha1.PodDefault{pd}
	}, 1000, "merging it takes more comparisons", 1},
	{"placeholders without an end", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("placeholders", func(s *kubeflowv1alpha1.PodDefaultSpec) {
			s.Substitute = true
			s.Env = []corev1.EnvVar{{Name: "A", Value: "${namespace}" + strings.Repeat("${", n) + "}"}}
		})
		return rawPod("", `{"name":"c%d"}`, 1), []*kubeflowv1alpha1.PodDefault{pd}
	}, 100_000, "", 10_000},
	{"variables of a pod", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		return rawPod("", `{"name":"c%d","env":[`+times(n, `{}`)+`]}`, 1), tiny
	}, 900_000, "PodDefault team-a/tiny cannot be applied to pod p: env of container c0: with it there would be more than 20000 elements", 5000},
	{"fields of a pod that nobody knows", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range 100 {
			pds = append(pds, hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
				s.ConflictPolicy = kubeflowv1alpha1.ConflictKeepPod
				s.TerminationGracePeriodSeconds, s.PriorityClassName, s.RuntimeClassName = new(int64(5)), "x", new("x")
			}))
		}
		return rawPod(times(n, `"x%d":1`)+`,"priorityClassName":"p","runtimeClassName":"p","terminationGracePeriodSeconds":1,`, `{"name":"c%d"}`, 1), pds
	}, 150_000, "", 20_000},
	{"labels of a pod", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		return bytes.Replace(rawPod("", `{"name":"c%d"}`, 1), []byte(`"a":"b"`), []byte(times(n, `"l%d":""`)), 1), tiny
	}, crowd, "more than 20000 labels or annotations", 5000},
	{"labels that objects add", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range 10 {
			pds = append(pds, hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
				s.Labels, s.Annotations = map[string]string{}, map[string]string{}
				for j := range n {
					s.Labels[fmt.Sprintf("l%d-%d", i, j)] = "x"
					s.Annotations[fmt.Sprintf("a%d-%d", i, j)] = "x"
				}
			}))
		}
		return rawPod("", `{"name":"c%d"}`, 1), pds
	}, 900, "", 400},
	{"selectors of thousands of values", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range 10 {
			pds = append(pds, hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
				for j := range 40 {
					r := metav1.LabelSelectorRequirement{Key: fmt.Sprint("l", j), Operator: metav1.LabelSelectorOpNotIn}
					for k := range n {
						r.Values = append(r.Values, fmt.Sprint("v", k))
					}
					s.Selector.MatchExpressions = append(s.Selector.MatchExpressions, r)
				}
			}))
		}
		return bytes.Replace(rawPod("", `{"name":"c%d"}`, 1), []byte(`"a":"b"`), []byte(times(1000, `"l%d":"other"`)), 1), pds
	}, 2000, "the specs of those that select it have", 0},
	{"placeholders in many arguments", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range 6 {
			pds = append(pds, hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
				s.Substitute = true
				s.Env = []corev1.EnvVar{{Name: fmt.Sprint("E", i), Value: "${namespace}"}}
				for j := range 100 {
					s.Sidecars = append(s.Sidecars, corev1.Container{Name: fmt.Sprintf("s%d-%d", i, j), Image: "i", Args: make([]string, n)})
				}
			}))
		}
		return rawPod("", `{"name":"c%d"}`, 1), pds
	}, 1000, "", 0},
	{"a text of many placeholders", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("placeholders", func(s *kubeflowv1alpha1.PodDefaultSpec) {
			s.Substitute = true
			s.Args = []string{strings.Repeat("${pod.labels['a']}", n)}
		})
		return rawPod("", `{"name":"c%d"}`, 100), []*kubeflowv1alpha1.PodDefault{pd}
	}, 50_000, "with it the pod would have more than 3 MiB", 100},
	{"objects each of which is against all before it", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range n {
			pds = append(pds, hostileObject(fmt.Sprintf("pd%03d", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
				s.ConflictPolicy = kubeflowv1alpha1.ConflictSkip
				s.Env = variables(min(n, i+1), 1, string(rune('a'+i%26)))
			}))
		}
		return rawPod("", `{"name":"c%d"}`, 1), pds
	}, 180, "", 0},
	{"long annotations, and init containers", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		pd := hostileObject("pd", func(s *kubeflowv1alpha1.PodDefaultSpec) {
			s.Env = variables(10, 1, "x")
			s.Annotations = map[string]string{"long": strings.Repeat("y", n)}
		})
		raw := rawPod(`"initContainers":[`+times(500, `{"name":"i%d","env":[{"name":"V0","value":"x"}]}`)+`],`, `{"name":"c%d"}`, 500)
		return bytes.Replace(raw, []byte(`"labels"`), []byte(`"annotations":{"other":"`+strings.Repeat(`\\u0041`, n/6)+`"},"labels"`), 1), []*kubeflowv1alpha1.PodDefault{pd}
	}, 120 << 10, "", 0},
	{"sidecars", func(n int) ([]byte, []*kubeflowv1alpha1.PodDefault) {
		var pds []*kubeflowv1alpha1.PodDefault
		for i := range 20 {
			pds = append(pds, hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
				for j := range n / 20 {
					name := fmt.Sprintf("s%d-%d", i, j)
					s.Sidecars = append(s.Sidecars, corev1.Container{Name: name, Image: "i"})
					s.Positions = append(s.Positions, kubeflowv1alpha1.ContainerPosition{Name: name, Place: kubeflowv1alpha1.PlaceBefore, Container: "c0"})
				}
				s.ContainerSelector = &kubeflowv1alpha1.ContainerSelector{Types: []kubeflowv1alpha1.ContainerType{kubeflowv1alpha1.TypeInjected}}
				s.Env = []corev1.EnvVar{{Name: fmt.Sprint("E", i)}}
			}))
		}
		return rawPod("", `{"name":"c%d"}`, 5), pds
	}, 2000, "with it the pod would have more than 1000", 200},
}

// allocated returns the bytes that f allocates, including freed ones.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// maxAllocated limits the bytes that one review allocates.
const maxAllocated = 96 << 20

// TestHostilePodsAreDeniedBeforeTheyCost sends cases that used to take seconds or
// gigabytes. It only logs the time, but allocations are deterministic.
func TestHostilePodsAreDeniedBeforeTheyCost(t *testing.T) {
	for _, c := range hostiles {
		t.Run(c.name, func(t *testing.T) {
			raw, objects := c.make(c.n)
			index := indexOf(objects...)
			var resp *admission.Response
			start := time.Now()
			took := allocated(func() { resp = handleFrom(t, raw, index) })
			t.Logf("%d KB of pod: %s, %d KB allocated", len(raw)>>10, time.Since(start).Round(time.Millisecond), took>>10)
			if took > maxAllocated {
				t.Errorf("%d bytes allocated", took)
			}
			if size := len(resp.Patch.AppendJSON(nil)); size > meta.MaxPod+meta.MaxPod/2 {
				t.Errorf("a patch of %d bytes", size)
			}
			switch {
			case c.want == "":
				if !resp.Allowed {
					t.Errorf("denied: %s", resp.Status.Message)
				}
			case resp.Allowed:
				t.Error("admitted")
			case !strings.Contains(resp.Status.Message, c.want) || len(resp.Status.Message) > 16<<10:
				t.Errorf("the message: %.2000s", resp.Status.Message)
			case resp.AuditAnnotations["denied"] == "" && c.n != crowd:
				t.Error("the audit annotations do not say which PodDefault it was")
			}
			if len(resp.Warnings) > meta.MaxTold+1 {
				t.Errorf("%d warnings", len(resp.Warnings))
			}
		})
	}
}

// TestWorkGrowsAsThePodAndItsObjectsDo doubles everything within the limits.
func TestWorkGrowsAsThePodAndItsObjectsDo(t *testing.T) {
	settings := DefaultSettings()
	for _, c := range hostiles {
		if c.within == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			work := func(n int) int {
				raw, objects := c.make(n)
				b := meta.NewBudget(t.Context())
				md, _ := meta.ReadMetadata(raw)
				s := match.NewMatcher(podtest.Namespace, &md, false, &b)
				chosen, err := s.BySent(indexOf(objects...))
				if err != nil {
					t.Fatal(err)
				}
				p, _ := podstate.Read(raw, md, chosen.Objects, b.Another())
				m := merge.All(p, chosen, nil, &merge.LeftAlone{Commands: settings.CommandExcluded, Mesh: settings.MeshContainers})
				if err := m.Beyond(); err != nil {
					t.Fatalf("%d: %v", n, err)
				}
				return p.Bounds.Work
			}
			once, twice := work(c.within), work(2*c.within)
			if twice > 5*once/2 {
				t.Errorf("%d take %d, twice as many %d", c.within, once, twice)
			}
		})
	}
}

// TestWorkGrowsAsTheFieldsOfTwoObjectsDo compares two objects that conflict in every
// field.
func TestWorkGrowsAsTheFieldsOfTwoObjectsDo(t *testing.T) {
	work := func(n int) int {
		object := func(value string) *plan.Plan {
			return plan.Compile(hostileObject(value, func(s *kubeflowv1alpha1.PodDefaultSpec) {
				s.Env, s.Labels, s.NodeSelector = variables(n, 1, value), map[string]string{}, map[string]string{}
				for i := range n {
					s.Labels[fmt.Sprint("l", i)], s.NodeSelector[fmt.Sprint("n", i)] = value, value
				}
			}))
		}
		b := meta.NewBudget(t.Context())
		if places := compare.Disagreements(&b, object("x"), object("y")); len(places) != 3*n || b.Spent() {
			t.Fatalf("%d places of %d", len(places), 3*n)
		}
		return b.Work
	}
	if once, twice := work(500), work(1000); twice > 5*once/2 {
		t.Errorf("500 take %d, twice as many %d", once, twice)
	}
}

// TestWhatIsTooMuchToCompareDisagrees: no pod gets both.
func TestWhatIsTooMuchToCompareDisagrees(t *testing.T) {
	object := func(name, key string) *kubeflowv1alpha1.PodDefault {
		return hostileObject(name, func(s *kubeflowv1alpha1.PodDefaultSpec) {
			projected := &corev1.ProjectedVolumeSource{}
			for i := range 2000 {
				projected.Sources = append(projected.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint(key, i)},
				}})
			}
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: projected}}}
		})
	}
	if places := compare.OfPlans(plan.Compile(object("a", "x")), plan.Compile(object("b", "y"))); !slices.Equal(places, []string{"volume v"}) {
		t.Errorf("%v", places)
	}
}

// TestAMergeEndsAtItsDeadline checks that the deadline is a fault, not a decision.
func TestAMergeEndsAtItsDeadline(t *testing.T) {
	raw, objects := hostiles[8].make(30)
	webhook, err := New(indexOf(objects...), DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if resp, err := webhook.Handler.Handle(ctx, createRequest(raw)); !errors.Is(err, context.Canceled) || resp != nil {
		t.Errorf("%+v, %v", resp, err)
	}
}
