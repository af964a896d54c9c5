// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
)

// Pods and objects with fields that Kubeflow does not have. Generators for the common
// fields are in property_test.go.

func sometimes(t *rapid.T, what string) bool { return rapid.IntRange(0, 3).Draw(t, what) == 0 }

func drawNodeTerm(t *rapid.T) corev1.NodeSelectorTerm {
	term := corev1.NodeSelectorTerm{MatchExpressions: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{
			Key: drawName.Draw(t, "node label"), Operator: corev1.NodeSelectorOpIn, Values: []string{drawName.Draw(t, "node label value")},
		}
	}), 0, 2).Draw(t, "expressions")}
	if sometimes(t, "a node by name") {
		term.MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{drawName.Draw(t, "node")}}}
	}
	return term
}

func drawAffinity(t *rapid.T) *corev1.Affinity {
	affinity := &corev1.Affinity{}
	if terms := rapid.SliceOfN(rapid.Custom(drawNodeTerm), 0, 2).Draw(t, "required node terms"); len(terms) > 0 {
		affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	if sometimes(t, "anti-affinity") {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: int32(rapid.IntRange(1, 2).Draw(t, "weight")), PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: drawName.Draw(t, "topology key")},
			}},
		}
	}
	return affinity
}

func drawResources(t *rapid.T) corev1.ResourceRequirements {
	draw := func(what string, from, to int) corev1.ResourceList {
		list := corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			if rapid.Bool().Draw(t, what+" of "+string(name)) {
				list[name] = resource.MustParse(fmt.Sprint(rapid.IntRange(from, to).Draw(t, "figure")))
			}
		}
		if len(list) == 0 {
			return nil
		}
		return list
	}
	return corev1.ResourceRequirements{Requests: draw("request", 1, 2), Limits: draw("limit", 2, 4)}
}

func drawPort(t *rapid.T) corev1.ContainerPort {
	return corev1.ContainerPort{ContainerPort: int32(rapid.IntRange(1, 2).Draw(t, "port")), Name: drawName.Draw(t, "port name")}
}

func drawCapabilities(t *rapid.T) *corev1.Capabilities {
	all := rapid.Permutation([]corev1.Capability{"A", "B", "C"}).Draw(t, "capabilities")
	return &corev1.Capabilities{Add: all[:1], Drop: all[1:2]}
}

func drawLifecycle(t *rapid.T) *corev1.Lifecycle {
	return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: int64(rapid.IntRange(1, 2).Draw(t, "seconds"))}}}
}

func drawSecurity(t *rapid.T) *corev1.SecurityContext {
	user := int64(rapid.IntRange(0, 1).Draw(t, "user"))
	security := &corev1.SecurityContext{RunAsUser: &user}
	if rapid.Bool().Draw(t, "has capabilities") {
		security.Capabilities = drawCapabilities(t)
	}
	return security
}

func drawPodSecurity(t *rapid.T) *corev1.PodSecurityContext {
	group := int64(rapid.IntRange(0, 1).Draw(t, "group"))
	return &corev1.PodSecurityContext{FSGroup: &group, SupplementalGroups: rapid.SliceOfNDistinct(rapid.Int64Range(1, 3), 0, 2, rapid.ID[int64]).Draw(t, "groups")}
}

func drawDNS(t *rapid.T) *corev1.PodDNSConfig {
	value := drawName.Draw(t, "option value")
	return &corev1.PodDNSConfig{
		Searches: rapid.SliceOfNDistinct(drawName, 0, 2, rapid.ID[string]).Draw(t, "search domains"),
		Options:  []corev1.PodDNSConfigOption{{Name: drawName.Draw(t, "option"), Value: &value}},
	}
}

var (
	drawFlag = rapid.SampledFrom([]*bool{nil, nil, new(true), new(false)})
)

func claimName(claim corev1.PodResourceClaim) string { return claim.Name }

func drawClaims(t *rapid.T) []corev1.PodResourceClaim {
	return drawList(t, "resource claims", func(t *rapid.T) corev1.PodResourceClaim {
		return corev1.PodResourceClaim{Name: drawName.Draw(t, "claim"), ResourceClaimName: new(drawName.Draw(t, "claimed"))}
	}, claimName)
}

var drawMessages = rapid.SampledFrom([]corev1.TerminationMessagePolicy{"", corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError})

// drawSwitches draws fields of a pod with one value. API servers default some of them,
// and some exclude others.
func drawSwitches(t *rapid.T) (s corev1.PodSpec) {
	s.SchedulerName = rapid.SampledFrom([]string{"", corev1.DefaultSchedulerName, "x", "y"}).Draw(t, "scheduler")
	s.EnableServiceLinks = drawFlag.Draw(t, "service links")
	s.HostUsers, s.ShareProcessNamespace = drawFlag.Draw(t, "users"), drawFlag.Draw(t, "process namespace")
	s.DNSPolicy = rapid.SampledFrom([]corev1.DNSPolicy{"", corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone}).Draw(t, "DNS policy")
	if sometimes(t, "has a deadline") {
		s.ActiveDeadlineSeconds = new(rapid.Int64Range(1, 2).Draw(t, "deadline"))
	}
	s.SchedulingGates = drawList(t, "scheduling gates", func(t *rapid.T) corev1.PodSchedulingGate {
		return corev1.PodSchedulingGate{Name: drawName.Draw(t, "gate")}
	}, func(g corev1.PodSchedulingGate) string { return g.Name })
	s.ReadinessGates = drawList(t, "readiness gates", func(t *rapid.T) corev1.PodReadinessGate {
		return corev1.PodReadinessGate{ConditionType: corev1.PodConditionType(drawName.Draw(t, "condition"))}
	}, func(g corev1.PodReadinessGate) string { return string(g.ConditionType) })
	s.ResourceClaims = drawClaims(t)
	return s
}

// drawRichPod draws a pod with some of the fields that objects may set.
func drawRichPod(t *rapid.T) *corev1.Pod {
	pod := drawPod(t)
	spec := &pod.Spec
	if sometimes(t, "pod has a node selector") {
		spec.NodeSelector = drawMap(t, "node selector")
	}
	if sometimes(t, "pod has an affinity") {
		spec.Affinity = drawAffinity(t)
	}
	if sometimes(t, "pod has a security context") {
		spec.SecurityContext = drawPodSecurity(t)
	}
	if sometimes(t, "pod has a class") {
		spec.PriorityClassName, spec.RuntimeClassName = drawName.Draw(t, "class"), new(drawName.Draw(t, "runtime class"))
	} else {
		spec.Priority = new(int32(0))
	}
	if rapid.Bool().Draw(t, "pod has a grace period") {
		spec.TerminationGracePeriodSeconds = new(rapid.SampledFrom([]int64{30, 60}).Draw(t, "grace period"))
	}
	if sometimes(t, "pod has DNS") {
		spec.DNSConfig = drawDNS(t)
	}
	if sometimes(t, "pod has switches") {
		drawn := drawSwitches(t)
		spec.SchedulerName, spec.EnableServiceLinks, spec.HostUsers, spec.DNSPolicy = drawn.SchedulerName, drawn.EnableServiceLinks, drawn.HostUsers, drawn.DNSPolicy
		spec.ShareProcessNamespace, spec.ActiveDeadlineSeconds = drawn.ShareProcessNamespace, drawn.ActiveDeadlineSeconds
		spec.SchedulingGates, spec.ReadinessGates, spec.ResourceClaims = drawn.SchedulingGates, drawn.ReadinessGates, drawn.ResourceClaims
		spec.HostPID = rapid.Bool().Draw(t, "pod has the host's processes")
	}
	if sometimes(t, "pod has a node") {
		spec.NodeName = "node"
	}
	if sometimes(t, "pod has a host alias") {
		spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{drawName.Draw(t, "host")}}}
	}
	if sometimes(t, "pod tolerates for a time") {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: "slow", Operator: corev1.TolerationOpExists, TolerationSeconds: new(rapid.SampledFrom([]int64{60, 300}).Draw(t, "toleration seconds")),
		})
	}
	if rapid.Bool().Draw(t, "pod has init containers") {
		always := corev1.ContainerRestartPolicyAlways
		native := drawContainer("native")(t)
		native.RestartPolicy = &always
		spec.InitContainers = []corev1.Container{drawContainer("init-a")(t), native}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if sometimes(t, "container has resources") {
			c.Resources = drawResources(t)
		}
		if sometimes(t, "container has a port") {
			c.Ports = []corev1.ContainerPort{drawPort(t)}
		}
		if sometimes(t, "container has a security context") {
			c.SecurityContext = drawSecurity(t)
		}
		c.TerminationMessagePolicy = drawMessages.Draw(t, "container's messages")
		if sometimes(t, "container has a hook") {
			c.Lifecycle = drawLifecycle(t)
		}
	}
	if sometimes(t, "limits of a LimitRange") {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[meta.LimitRangerAnnotation] = podstate.LimitRangerPrefix + "cpu, memory request for container main-0; cpu limit for container main-0"
	}
	return pod
}

var drawPolicy = rapid.SampledFrom([]kubeflowv1alpha1.ConflictPolicy{
	"", kubeflowv1alpha1.ConflictDeny, kubeflowv1alpha1.ConflictKeepPod, kubeflowv1alpha1.ConflictOverride, kubeflowv1alpha1.ConflictSkip,
	kubeflowv1alpha1.ConflictKeepPod, kubeflowv1alpha1.ConflictOverride, kubeflowv1alpha1.ConflictSkip,
})

// enrich adds some of the fields that Kubeflow does not have to a spec.
func enrich(t *rapid.T, spec *kubeflowv1alpha1.PodDefaultSpec) {
	spec.ConflictPolicy = drawPolicy.Draw(t, "policy")
	spec.Priority = int32(rapid.IntRange(-1, 1).Draw(t, "priority"))
	if rapid.IntRange(0, 7).Draw(t, "mode") == 0 {
		spec.Mode = kubeflowv1alpha1.ModeAudit
	}
	if sometimes(t, "is an alternative") {
		spec.ExclusiveGroup = drawName.Draw(t, "group")
	}
	if sometimes(t, "has a node selector") {
		spec.NodeSelector = drawMap(t, "node selector")
	}
	if sometimes(t, "has an affinity") {
		spec.Affinity = drawAffinity(t)
	}
	if sometimes(t, "has a pod security context") {
		spec.PodSecurityContext = drawPodSecurity(t)
	}
	if sometimes(t, "has a container security context") {
		spec.ContainerSecurityContext = drawSecurity(t)
	}
	if sometimes(t, "has resources") {
		spec.Resources = new(drawResources(t))
	}
	if sometimes(t, "has a class") {
		spec.PriorityClassName = drawName.Draw(t, "class")
		spec.RuntimeClassName = new(drawName.Draw(t, "runtime class"))
	}
	if sometimes(t, "has a grace period") {
		spec.TerminationGracePeriodSeconds = new(rapid.SampledFrom([]int64{30, 60, 90}).Draw(t, "grace period"))
	}
	if sometimes(t, "has DNS") {
		spec.DNSConfig = drawDNS(t)
	}
	if sometimes(t, "has switches") {
		drawn := drawSwitches(t)
		spec.SchedulerName, spec.EnableServiceLinks, spec.HostUsers, spec.DNSPolicy = drawn.SchedulerName, drawn.EnableServiceLinks, drawn.HostUsers, drawn.DNSPolicy
		spec.ShareProcessNamespace, spec.ActiveDeadlineSeconds = drawn.ShareProcessNamespace, drawn.ActiveDeadlineSeconds
		spec.SchedulingGates, spec.ReadinessGates, spec.ResourceClaims = drawn.SchedulingGates, drawn.ReadinessGates, drawn.ResourceClaims
		spec.TerminationMessagePolicy = drawMessages.Draw(t, "messages")
	}
	if sometimes(t, "has a host alias") {
		spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{drawName.Draw(t, "host")}}}
	}
	if sometimes(t, "has a hook") {
		spec.Lifecycle = drawLifecycle(t)
	}
	if sometimes(t, "has ports") {
		spec.Ports = drawList(t, "ports", drawPort, func(p corev1.ContainerPort) string { return fmt.Sprint(p.ContainerPort) })
	}
	if sometimes(t, "has a device") {
		device := drawName.Draw(t, "device")
		spec.VolumeDevices = []corev1.VolumeDevice{{Name: "block-" + device, DevicePath: "/dev/" + device}}
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "block-" + device, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "block"}}})
	}
	if sometimes(t, "has a spread constraint") {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			TopologyKey: "a", WhenUnsatisfiable: corev1.DoNotSchedule, MaxSkew: int32(rapid.IntRange(1, 2).Draw(t, "skew")),
		}}
	}
	if sometimes(t, "tolerates for a time") {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: "slow", Operator: corev1.TolerationOpExists, TolerationSeconds: new(rapid.SampledFrom([]int64{60, 90, 300}).Draw(t, "toleration seconds")),
		})
	}
	if rapid.Bool().Draw(t, "picks containers") {
		all := []kubeflowv1alpha1.ContainerType{kubeflowv1alpha1.TypeContainer, kubeflowv1alpha1.TypeInitContainer, kubeflowv1alpha1.TypeInjected}
		spec.ContainerSelector = &kubeflowv1alpha1.ContainerSelector{
			Types: rapid.Permutation(all).Draw(t, "types")[:rapid.IntRange(0, 3).Draw(t, "how many")],
		}
		if sometimes(t, "picks the first") {
			spec.ContainerSelector.First, spec.ContainerSelector.Types = true, nil
		}
		if sometimes(t, "picks by name") {
			spec.ContainerSelector.Names = []string{"main-1", "side-a", "init-b"}
		}
		if sometimes(t, "excludes") {
			spec.ContainerSelector.ExcludeNames = []string{"main-0"}
		}
	}
	for _, list := range [][]corev1.Container{spec.Sidecars, spec.InitContainers} {
		for i := range list {
			if rapid.Bool().Draw(t, "has a position") {
				spec.Positions = append(spec.Positions, drawPosition(t, list[i].Name))
			}
		}
	}
	if sometimes(t, "substitutes") {
		spec.Substitute = true
		spec.Env = append(spec.Env, corev1.EnvVar{Name: "FILLED", Value: "${namespace}-${pod.labels['" + drawName.Draw(t, "placeholder") + "']}"})
	}
}

func drawPosition(t *rapid.T, name string) kubeflowv1alpha1.ContainerPosition {
	p := kubeflowv1alpha1.ContainerPosition{Name: name, Place: rapid.SampledFrom([]kubeflowv1alpha1.ContainerPlace{
		kubeflowv1alpha1.PlaceFirst, kubeflowv1alpha1.PlaceLast, kubeflowv1alpha1.PlaceBefore, kubeflowv1alpha1.PlaceAfter,
	}).Draw(t, "place")}
	if p.Place == kubeflowv1alpha1.PlaceBefore || p.Place == kubeflowv1alpha1.PlaceAfter {
		p.Container = rapid.SampledFrom([]string{"main-0", "main-1", "init-b", "side-b", "missing"}).Draw(t, "beside")
		if p.Container == name {
			p.Container = "missing"
		}
	}
	return p
}

// drawObjects draws PodDefaults and ClusterPodDefaults with any fields.
func drawObjects(t *rapid.T) []*plan.Plan {
	var out []*plan.Plan
	for _, pd := range drawPodDefaults(t) {
		enrich(t, &pd.Spec)
		out = append(out, plan.Compile(pd))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "ClusterPodDefaults") {
		pd := drawPodDefault(fmt.Sprintf("pd-%d", i))(t)
		enrich(t, &pd.Spec)
		cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: pd.Name, ResourceVersion: "8"}}
		cpd.Spec.PodDefaultSpec = pd.Spec
		out = append(out, plan.CompileCluster(cpd))
	}
	return out
}

func indexOfCompiled(objects []*plan.Plan) *source.Index {
	index := source.NewIndex()
	for _, c := range objects {
		index.Set(c)
	}
	return index
}
