// SPDX-License-Identifier: Apache-2.0

package specification

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kubeflow "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyport "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// Pods and objects have few names and values, so that they meet.

// draws is a source of random choices.
type draws struct {
	*rand.Rand
	palette []string // the fields that pods and objects have: few, so that several have one
}

func newDraws(seed, n uint64) draws {
	d := draws{Rand: rand.New(rand.NewPCG(seed, n))}
	names := slices.Sorted(maps.Keys(drawField))
	for range 5 {
		d.palette = append(d.palette, one(d, names...))
	}
	return d
}

func (d draws) below(n int) int     { return d.IntN(n) }
func (d draws) oneIn(n int) bool    { return d.below(n) == n-1 }
func (d draws) name() string        { return one(d, "a", "b") }
func (d draws) value() string       { return one(d, "1", "2") }
func (d draws) number() int64       { return int64(1 + d.below(2)) }
func (d draws) flag() *bool         { return new(d.oneIn(2)) }
func one[T any](d draws, of ...T) T { return of[d.below(len(of))] }

// some draws up to two elements with different keys.
func some[T any](d draws, draw func() T, key func(T) string) []T {
	var result []T
	for range 1 + d.below(2) {
		drawn := draw()
		if !slices.ContainsFunc(result, func(e T) bool { return key(e) == key(drawn) }) {
			result = append(result, drawn)
		}
	}
	return result
}

func (d draws) pairs() map[string]string {
	result := map[string]string{d.name(): d.value()}
	if d.oneIn(3) {
		result[d.name()] = d.value()
	}
	return result
}

func (d draws) variable() corev1.EnvVar {
	v := corev1.EnvVar{Name: one(d, "A", "B", "C")}
	switch d.below(6) {
	case 0:
		v.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: one(d, "status.podIP", "metadata.name")}}
	case 1:
		v.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: d.name(), LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}
	case 2:
		v.Value = one(d, "", "$(A)")
	default:
		v.Value = d.value()
	}
	return v
}

func (d draws) source() corev1.EnvFromSource {
	ref := corev1.LocalObjectReference{Name: d.name()}
	s := corev1.EnvFromSource{Prefix: one(d, "", "", "P_")}
	var optional *bool
	if d.oneIn(4) {
		optional = d.flag()
	}
	if d.oneIn(2) {
		s.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: ref, Optional: optional}
	} else {
		s.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: ref, Optional: optional}
	}
	return s
}

func (d draws) volume() corev1.Volume {
	v := corev1.Volume{Name: one(d, "a", "b", "c")}
	switch d.below(5) {
	case 0:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: one(d, "", "", corev1.StorageMediumMemory)}
	case 1:
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: d.name()}}
		if d.oneIn(3) {
			v.ConfigMap.Items = []corev1.KeyToPath{{Key: "k", Path: d.name()}}
		}
	case 2:
		v.Image = &corev1.ImageVolumeSource{Reference: "i"}
	default:
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: d.name()}
	}
	return v
}

func (d draws) mount() corev1.VolumeMount {
	m := corev1.VolumeMount{Name: one(d, "a", "b"), MountPath: "/" + d.name()}
	switch d.below(6) {
	case 0:
		m.SubPath = d.name()
	case 1:
		m.ReadOnly = true
	}
	return m
}

func (d draws) port() corev1.ContainerPort {
	p := corev1.ContainerPort{ContainerPort: int32(d.number())}
	if d.oneIn(3) {
		p.Name = "p" + d.name()
	}
	if d.oneIn(6) {
		p.HostPort = int32(d.number())
	}
	if d.oneIn(4) {
		p.Protocol = one(d, corev1.ProtocolTCP, corev1.ProtocolUDP)
	}
	return p
}

func (d draws) toleration() corev1.Toleration {
	t := corev1.Toleration{Key: d.name(), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	if d.oneIn(3) {
		t.Operator, t.Value = one(d, "", corev1.TolerationOpEqual), d.value()
	}
	if d.oneIn(2) {
		t.TolerationSeconds = new(one[int64](d, 60, 300, 90))
	}
	return t
}

func (d draws) nodeTerm() corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: some(d, func() corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: d.name(), Operator: corev1.NodeSelectorOpIn, Values: []string{d.value()}}
	}, func(r corev1.NodeSelectorRequirement) string { return r.Key })}
}

func (d draws) affinity() *corev1.Affinity {
	a := &corev1.Affinity{}
	if d.oneIn(2) {
		a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: some(d, d.nodeTerm, func(t corev1.NodeSelectorTerm) string { return fmt.Sprint(t) })}}
	}
	if d.oneIn(2) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: int32(d.number()), PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: d.name(), LabelSelector: &metav1.LabelSelector{}}}}}
	}
	if d.oneIn(2) {
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: d.name(), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "1"}}}}}
	}
	return a
}

func (d draws) resources() corev1.ResourceRequirements {
	list := func(values ...string) corev1.ResourceList {
		result := corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			if d.oneIn(2) {
				result[name] = resource.MustParse(one(d, values...))
			}
		}
		if len(result) == 0 {
			return nil
		}
		return result
	}
	r := corev1.ResourceRequirements{Requests: list("1", "2"), Limits: list("2", "3")}
	if d.oneIn(6) {
		r.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(d.value())}
		if d.oneIn(3) {
			r.Requests = corev1.ResourceList{"nvidia.com/gpu": r.Limits["nvidia.com/gpu"]}
		}
	}
	return r
}

func (d draws) security() *corev1.SecurityContext {
	s := &corev1.SecurityContext{}
	if d.oneIn(2) {
		s.RunAsUser = new(d.number())
	}
	if d.oneIn(3) {
		s.AllowPrivilegeEscalation = d.flag()
	} else if d.oneIn(4) {
		s.Privileged = new(true)
	}
	if d.oneIn(3) {
		s.SeccompProfile = &corev1.SeccompProfile{Type: one(d, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)}
	}
	if d.oneIn(2) {
		all := one(d, []corev1.Capability{"X", "Y"}, []corev1.Capability{"Y", "X"}, []corev1.Capability{"CAP_SYS_ADMIN", "ALL"})
		s.Capabilities = &corev1.Capabilities{Add: all[:1], Drop: all[1:]}
	}
	return s
}

func (d draws) podSecurity() *corev1.PodSecurityContext {
	s := &corev1.PodSecurityContext{}
	if d.oneIn(2) {
		s.FSGroup = new(d.number())
	}
	if d.oneIn(2) {
		s.SupplementalGroups = some(d, d.number, func(n int64) string { return fmt.Sprint(n) })
	}
	if d.oneIn(3) {
		s.SELinuxOptions = &corev1.SELinuxOptions{Level: one(d, "", "l"), Role: one(d, "", "r"), Type: d.name()}
	}
	if d.oneIn(3) {
		s.Sysctls = []corev1.Sysctl{{Name: "net.a", Value: d.value()}}
	}
	return s
}

func (d draws) lifecycle() *corev1.Lifecycle {
	handler := func() *corev1.LifecycleHandler {
		return &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: d.number()}}
	}
	l := &corev1.Lifecycle{PreStop: handler()}
	if d.oneIn(3) {
		l.PostStart = &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: d.name(), Port: intstr.FromInt32(80)}}
	}
	return l
}

func (d draws) dns() *corev1.PodDNSConfig {
	return &corev1.PodDNSConfig{
		Nameservers: some(d, func() string { return one(d, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4") }, func(s string) string { return s }),
		Searches:    some(d, d.name, func(s string) string { return s }),
		Options:     []corev1.PodDNSConfigOption{{Name: d.name(), Value: new(d.value())}},
	}
}

func (d draws) claim() corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: d.name(), ResourceClaimName: new(d.name())}
}

// container draws a container with some of the fields that objects may add to.
func (d draws) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: one(d, "i", "i", "j")}
	if d.oneIn(3) {
		c.Env = some(d, d.variable, func(v corev1.EnvVar) string { return v.Name })
	}
	switch d.below(12) {
	case 0:
		c.EnvFrom = []corev1.EnvFromSource{d.source()}
	case 1:
		c.Command = []string{d.name()}
	case 2:
		c.Args = []string{d.name()}
	case 3:
		c.Resources = d.resources()
	case 4:
		c.SecurityContext = d.security()
	case 5:
		c.Ports = []corev1.ContainerPort{d.port()}
	}
	return c
}

func (d draws) sidecarOf(prefix string) []corev1.Container {
	return some(d, func() corev1.Container { return d.container(one(d, prefix+"a", prefix+"b", "both")) }, func(c corev1.Container) string { return c.Name })
}

// inits draws init containers, some of them native sidecars.
func (d draws) inits() []corev1.Container {
	list := d.sidecarOf("init-")
	for i := range list {
		if d.oneIn(2) {
			list[i].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
	}
	return list
}

// drawField draws one field of a spec each, by its name in JSON; all but those of every object: selector, priority, policy, mode.
var drawField = map[string]func(draws, *kubeflow.PodDefaultSpec){
	"env": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.Env = some(d, d.variable, func(v corev1.EnvVar) string { return v.Name })
	},
	"envFrom": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.EnvFrom = some(d, d.source, func(s corev1.EnvFromSource) string { return fmt.Sprint(s) })
	},
	"volumes": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.Volumes = some(d, d.volume, func(v corev1.Volume) string { return v.Name })
	},
	"volumeMounts": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.VolumeMounts = some(d, d.mount, func(m corev1.VolumeMount) string { return m.MountPath })
	},
	"volumeDevices": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.VolumeDevices = []corev1.VolumeDevice{{Name: one(d, "a", "b", "c"), DevicePath: "/" + one(d, "a", "x", "y")}}
	},
	"tolerations": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.Tolerations = some(d, d.toleration, func(t corev1.Toleration) string { return fmt.Sprint(t.Key, t.Value) })
	},
	"labels":         func(d draws, s *kubeflow.PodDefaultSpec) { s.Labels = d.pairs() },
	"annotations":    func(d draws, s *kubeflow.PodDefaultSpec) { s.Annotations = d.pairs() },
	"initContainers": func(d draws, s *kubeflow.PodDefaultSpec) { s.InitContainers = d.inits() },
	"sidecars":       func(d draws, s *kubeflow.PodDefaultSpec) { s.Sidecars = d.sidecarOf("side-") },
	"positions": func(d draws, s *kubeflow.PodDefaultSpec) {
		if s.Sidecars == nil && s.InitContainers == nil {
			s.Sidecars = d.sidecarOf("side-")
		}
		for _, c := range slices.Concat(s.Sidecars, s.InitContainers) {
			p := kubeflow.ContainerPosition{Name: c.Name, Place: one(d, kubeflow.PlaceFirst, kubeflow.PlaceLast, kubeflow.PlaceBefore, kubeflow.PlaceAfter)}
			if p.Place == kubeflow.PlaceBefore || p.Place == kubeflow.PlaceAfter {
				p.Container = one(d, "main", "helper", "side-a", "init-b", "setup", "missing")
				if p.Container == c.Name {
					p.Container = "main"
				}
			}
			s.Positions = append(s.Positions, p)
		}
	},
	"imagePullSecrets": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: d.name()}}
	},
	"serviceAccountName":           func(d draws, s *kubeflow.PodDefaultSpec) { s.ServiceAccountName = d.name() },
	"automountServiceAccountToken": func(d draws, s *kubeflow.PodDefaultSpec) { s.AutomountServiceAccountToken = d.flag() },
	"command":                      func(d draws, s *kubeflow.PodDefaultSpec) { s.Command = []string{d.name()} },
	"args":                         func(d draws, s *kubeflow.PodDefaultSpec) { s.Args = []string{d.name()} },
	"nodeSelector":                 func(d draws, s *kubeflow.PodDefaultSpec) { s.NodeSelector = d.pairs() },
	"affinity":                     func(d draws, s *kubeflow.PodDefaultSpec) { s.Affinity = d.affinity() },
	"topologySpreadConstraints": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{d.spread()}
	},
	"podSecurityContext":       func(d draws, s *kubeflow.PodDefaultSpec) { s.PodSecurityContext = d.podSecurity() },
	"containerSecurityContext": func(d draws, s *kubeflow.PodDefaultSpec) { s.ContainerSecurityContext = d.security() },
	"resources": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.Resources = new(d.resources())
		if d.oneIn(4) {
			s.Resources.Claims = []corev1.ResourceClaim{{Name: d.name()}}
		}
	},
	"priorityClassName": func(d draws, s *kubeflow.PodDefaultSpec) { s.PriorityClassName = d.name() },
	"runtimeClassName":  func(d draws, s *kubeflow.PodDefaultSpec) { s.RuntimeClassName = new(d.name()) },
	"terminationGracePeriodSeconds": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.TerminationGracePeriodSeconds = new(one[int64](d, 30, 60, 90))
	},
	"hostAliases": func(d draws, s *kubeflow.PodDefaultSpec) { s.HostAliases = []corev1.HostAlias{d.alias()} },
	"dnsConfig":   func(d draws, s *kubeflow.PodDefaultSpec) { s.DNSConfig = d.dns() },
	"resourceClaims": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{d.claim()}
		if s.Resources == nil && d.oneIn(2) {
			s.Resources = &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: d.name()}}}
		}
	},
	"schedulingGates": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g.io/" + d.name()}}
	},
	"readinessGates": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: corev1.PodConditionType("g.io/" + d.name())}}
	},
	"schedulerName": func(d draws, s *kubeflow.PodDefaultSpec) { s.SchedulerName = d.name() },
	"hostUsers":     func(d draws, s *kubeflow.PodDefaultSpec) { s.HostUsers = d.flag() },
	"shareProcessNamespace": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.ShareProcessNamespace = d.flag()
	},
	"activeDeadlineSeconds": func(d draws, s *kubeflow.PodDefaultSpec) { s.ActiveDeadlineSeconds = new(d.number()) },
	"enableServiceLinks":    func(d draws, s *kubeflow.PodDefaultSpec) { s.EnableServiceLinks = d.flag() },
	"dnsPolicy": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.DNSPolicy = one(d, corev1.DNSDefault, corev1.DNSNone, corev1.DNSClusterFirst)
	},
	"terminationMessagePolicy": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.TerminationMessagePolicy = one(d, corev1.TerminationMessageFallbackToLogsOnError, corev1.TerminationMessageReadFile)
	},
	"envFromSecretSelector": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.EnvFromSecretSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "env"}}
	},
	"volumesFromSecretSelector": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.VolumesFromSecretSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "files"}}
		s.SecretsMountPath = "/secrets"
	},
	"lifecycle": func(d draws, s *kubeflow.PodDefaultSpec) { s.Lifecycle = d.lifecycle() },
	"ports": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.Ports = some(d, d.port, func(p corev1.ContainerPort) string { return fmt.Sprint(p.ContainerPort) })
	},
	"containerSelector": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.ContainerSelector = &kubeflow.ContainerSelector{First: d.oneIn(4)}
		if !d.oneIn(3) {
			s.ContainerSelector.Types = one(d, [][]kubeflow.ContainerType{{"Container"}, {"InitContainer"}, {"Injected"}, {"Container", "InitContainer"}, {"Container", "Injected"}}...)
		}
		if d.oneIn(4) {
			s.ContainerSelector.Names = []string{one(d, "main", "istio-proxy", "side-a", "init-a")}
		}
		if d.oneIn(4) {
			s.ContainerSelector.ExcludeNames = []string{one(d, "main", "helper", "side-b")}
		}
	},
	"exclusiveGroup": func(d draws, s *kubeflow.PodDefaultSpec) { s.ExclusiveGroup = d.name() },
	"substitute": func(d draws, s *kubeflow.PodDefaultSpec) {
		s.Substitute = true
		text := one(d, "${namespace}", "${pod.labels['a']}", "x-${pod.labels['b']}", "$${namespace} ${HOME}")
		switch d.below(3) {
		case 0:
			s.Env = append(s.Env, corev1.EnvVar{Name: "FILLED", Value: text})
		case 1:
			s.Args = []string{text}
		default:
			s.Sidecars = append(s.Sidecars, corev1.Container{Name: "side-filled", Image: "i", Args: []string{text}})
		}
	},
	"desc":                 func(d draws, s *kubeflow.PodDefaultSpec) { s.Desc = d.name() },
	"revisionHistoryLimit": func(d draws, s *kubeflow.PodDefaultSpec) { s.RevisionHistoryLimit = new(int32(d.number())) },
}

func (d draws) spread() corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		TopologyKey: d.name(), WhenUnsatisfiable: corev1.DoNotSchedule, MaxSkew: int32(d.number()), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "1"}}}
}

func (d draws) alias() corev1.HostAlias {
	return corev1.HostAlias{IP: one(d, "10.0.0.1", "10.0.0.2"), Hostnames: []string{d.name()}}
}

// spec draws a spec with some fields.
func (d draws) spec() (s kubeflow.PodDefaultSpec) {
	s.Selector = one(d, metav1.LabelSelector{}, metav1.LabelSelector{}, metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}},
		metav1.LabelSelector{MatchLabels: map[string]string{"b": "2"}},
		metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "b", Operator: metav1.LabelSelectorOpDoesNotExist}}})
	s.ConflictPolicy = one(d, "", kubeflow.ConflictKubeflow, kubeflow.ConflictDeny, kubeflow.ConflictKeepPod, kubeflow.ConflictKeepPod, kubeflow.ConflictOverride, kubeflow.ConflictOverride, kubeflow.ConflictSkip)
	s.Priority = int32(d.below(3) - 1)
	if d.oneIn(10) {
		s.Mode = kubeflow.ModeAudit
	}
	for range 1 + d.below(4) {
		drawField[one(d, d.palette...)](d, &s)
	}
	for _, m := range s.VolumeMounts {
		if d.oneIn(2) && !slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: m.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
	}
	return s
}

// podDefault and clusterPodDefault draw an object of a name, in a new version.
func (d draws) podDefault(name string, version int) kubeflow.PodDefault {
	return kubeflow.PodDefault{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, ResourceVersion: fmt.Sprint(version), Generation: int64(version)}, Spec: d.spec()}
}

func (d draws) clusterPodDefault(name string, version int) sallyport.ClusterPodDefault {
	c := sallyport.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(version), Generation: int64(version)}}
	c.Spec.PodDefaultSpec, c.Spec.AllowExclude = d.spec(), d.oneIn(3)
	if d.oneIn(3) {
		c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": one(d, "a", "a", "b")}}
	}
	return c
}

// pod draws a pod as the API server sends it, before managedFields.
func (d draws) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: namespace}}
	s := &pod.Spec
	if !d.oneIn(4) {
		pod.Labels = d.pairs()
	}
	if d.oneIn(3) {
		pod.Annotations = d.pairs()
	}
	s.Containers = []corev1.Container{d.container("main")}
	for _, name := range []string{"helper", "istio-proxy", "side-a", "init-a"} {
		if d.oneIn(4) {
			s.Containers = append(s.Containers, d.container(name))
		}
	}
	if d.oneIn(6) {
		s.Containers[0].Name, s.Containers[len(s.Containers)-1].Name = s.Containers[len(s.Containers)-1].Name, s.Containers[0].Name
	}
	for _, name := range []string{"setup", "init-b", "linkerd-proxy"} {
		if d.oneIn(4) {
			s.InitContainers = append(s.InitContainers, d.container(name))
			if d.oneIn(2) {
				s.InitContainers[len(s.InitContainers)-1].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
		}
	}
	s.Volumes = some(d, d.volume, func(v corev1.Volume) string { return v.Name })
	for _, v := range s.Volumes {
		if d.oneIn(2) {
			s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: v.Name, MountPath: "/" + d.name()}}
		}
	}
	if d.oneIn(2) { // the plugin ServiceAccount
		s.Volumes = append(s.Volumes, corev1.Volume{Name: "kube-api-access-x2v4s", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}})
		for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
			for i := range list {
				list[i].VolumeMounts = append(list[i].VolumeMounts, corev1.VolumeMount{
					Name: "kube-api-access-x2v4s", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true})
			}
		}
	}
	// Some of what objects set, from their own generator, in the pod's place.
	var other kubeflow.PodDefaultSpec
	for range d.below(6) {
		drawField[one(d, d.palette...)](d, &other)
	}
	s.Tolerations, s.ImagePullSecrets, s.ServiceAccountName, s.NodeSelector, s.Affinity = other.Tolerations, other.ImagePullSecrets, other.ServiceAccountName, other.NodeSelector, other.Affinity
	s.TopologySpreadConstraints, s.SecurityContext, s.RuntimeClassName, s.HostAliases, s.DNSConfig = other.TopologySpreadConstraints, other.PodSecurityContext, other.RuntimeClassName, other.HostAliases, other.DNSConfig
	s.TerminationGracePeriodSeconds, s.ResourceClaims, s.SchedulingGates, s.ReadinessGates = other.TerminationGracePeriodSeconds, other.ResourceClaims, other.SchedulingGates, other.ReadinessGates
	s.SchedulerName, s.HostUsers, s.ShareProcessNamespace, s.ActiveDeadlineSeconds = other.SchedulerName, other.HostUsers, other.ShareProcessNamespace, other.ActiveDeadlineSeconds
	s.EnableServiceLinks, s.DNSPolicy, s.PriorityClassName, s.AutomountServiceAccountToken = other.EnableServiceLinks, other.DNSPolicy, other.PriorityClassName, other.AutomountServiceAccountToken
	c := &s.Containers[0]
	c.EnvFrom, c.TerminationMessagePolicy, c.Lifecycle = append(c.EnvFrom, other.EnvFrom...), other.TerminationMessagePolicy, other.Lifecycle
	switch d.below(12) {
	case 0:
		s.HostNetwork = ptr.Deref(s.HostUsers, true)
	case 1:
		s.HostPID = ptr.Deref(s.HostUsers, true) && !ptr.Deref(s.ShareProcessNamespace, false)
	case 2:
		if s.SchedulingGates == nil {
			s.NodeName = "n"
		}
	}
	if d.oneIn(6) {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "kubernetes.io/limit-ranger",
			"LimitRanger plugin set: cpu, memory request for container main; cpu limit for container main")
		c.Resources = d.resources()
	}
	switch d.below(20) {
	case 0:
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "poddefault.admission.kubeflow.org/exclude", "true")
	case 1:
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, corev1.MirrorPodAnnotationKey, "x")
	}
	return defaulted(pod)
}

// defaulted applies the API server's defaults, and what its plugins fill in, for drawn fields.
func defaulted(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	s := &pod.Spec
	for i := range s.Volumes {
		if c := s.Volumes[i].ConfigMap; c != nil && c.DefaultMode == nil {
			c.DefaultMode = new(int32(420))
		}
		if c := s.Volumes[i].Secret; c != nil && c.DefaultMode == nil {
			c.DefaultMode = new(int32(420))
		}
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			defaultContainer(&list[i], s.HostNetwork)
		}
	}
	setIfZero(&s.ServiceAccountName, "default")
	s.DeprecatedServiceAccount = s.ServiceAccountName
	setIfZero(&s.RestartPolicy, corev1.RestartPolicyAlways)
	setIfZero(&s.SecurityContext, &corev1.PodSecurityContext{})
	setIfZero(&s.TerminationGracePeriodSeconds, new(int64(30)))
	setIfZero(&s.SchedulerName, corev1.DefaultSchedulerName)
	setIfZero(&s.DNSPolicy, corev1.DNSClusterFirst)
	setIfZero(&s.EnableServiceLinks, new(true))
	setIfZero(&s.Priority, new(int32(0))) // the plugin Priority
	setIfZero(&s.PreemptionPolicy, new(corev1.PreemptLowerPriority))
	return pod
}

func defaultContainer(c *corev1.Container, hostNetwork bool) {
	setIfZero(&c.TerminationMessagePath, "/dev/termination-log")
	setIfZero(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	setIfZero(&c.ImagePullPolicy, corev1.PullAlways)
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			setIfZero(&from.FieldRef.APIVersion, "v1")
		}
	}
	for i := range c.Ports {
		setIfZero(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork {
			setIfZero(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for name, limit := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; !ok {
			if c.Resources.Requests == nil {
				c.Resources.Requests = corev1.ResourceList{}
			}
			c.Resources.Requests[name] = limit
		}
	}
	if c.Lifecycle != nil && c.Lifecycle.PostStart != nil && c.Lifecycle.PostStart.HTTPGet != nil {
		setIfZero(&c.Lifecycle.PostStart.HTTPGet.Scheme, corev1.URISchemeHTTP)
	}
}

func setIfZero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
