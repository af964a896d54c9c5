// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// The generators use few names, so that PodDefaults and pods often conflict, and a pod often
// contains values that a PodDefault would add.

var (
	drawnName  = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
	drawnValue = rapid.SampledFrom([]string{"1", "1", "1", "2", "", "it's \"quoted\"\n\\ and ${X}"})
)

func sometimes(t *rapid.T, what string) bool { return rapid.IntRange(0, 3).Draw(t, what) == 0 }

func drawnList[T any](t *rapid.T, what string, most int, draw func(*rapid.T) T, key func(T) string) []T {
	if !rapid.Bool().Draw(t, "has "+what) {
		return nil
	}
	return rapid.SliceOfNDistinct(rapid.Custom(draw), 0, most, key).Draw(t, what)
}

func drawnEnv(t *rapid.T) corev1.EnvVar {
	e := corev1.EnvVar{Name: drawnName.Draw(t, "env")}
	switch rapid.IntRange(0, 9).Draw(t, "source") {
	case 0:
		e.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}
	case 1:
		e.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: drawnName.Draw(t, "key"), Optional: drawnFlag(t),
		}}
	case 2:
		e.ValueFrom = &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}
		if rapid.Bool().Draw(t, "has a divisor") {
			e.ValueFrom.ResourceFieldRef.Divisor = resource.MustParse("1m")
		}
	default:
		e.Value = drawnValue.Draw(t, "value")
	}
	return e
}

func drawnFlag(t *rapid.T) *bool {
	return rapid.SampledFrom([]*bool{nil, new(false), new(true)}).Draw(t, "flag")
}

func drawnEnvFrom(t *rapid.T) corev1.EnvFromSource {
	e := corev1.EnvFromSource{Prefix: rapid.SampledFrom([]string{"", "P_"}).Draw(t, "prefix")}
	name := corev1.LocalObjectReference{Name: drawnName.Draw(t, "source")}
	if rapid.Bool().Draw(t, "secret") {
		e.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: name, Optional: drawnFlag(t)}
	} else {
		e.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: name}
	}
	return e
}

func envFromKey(e corev1.EnvFromSource) string {
	if e.SecretRef != nil {
		return e.Prefix + " s " + e.SecretRef.Name
	}
	return e.Prefix + " c " + e.ConfigMapRef.Name
}

func drawnVolume(t *rapid.T) corev1.Volume {
	v := corev1.Volume{Name: drawnName.Draw(t, "volume")}
	switch rapid.IntRange(0, 6).Draw(t, "source") {
	case 0:
		v.Secret = &corev1.SecretVolumeSource{SecretName: "s", Items: []corev1.KeyToPath{{Key: drawnName.Draw(t, "key"), Path: "p"}}}
	case 1:
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Optional: drawnFlag(t)}
	case 2:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(1<<30, resource.BinarySI)}
	case 3:
		v.CSI = &corev1.CSIVolumeSource{Driver: "d.example.com", VolumeAttributes: map[string]string{"in": drawnValue.Draw(t, "attribute"), "example.com/x": "1"}}
	case 4:
	default:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	return v
}

func drawnMount(t *rapid.T, volumes []corev1.Volume) corev1.VolumeMount {
	m := corev1.VolumeMount{MountPath: "/" + drawnName.Draw(t, "path"), ReadOnly: sometimes(t, "read only")}
	m.Name = rapid.SampledFrom(volumes).Draw(t, "mounted").Name
	if sometimes(t, "propagates") {
		m.MountPropagation = new(rapid.SampledFrom([]corev1.MountPropagationMode{"None", "HostToContainer"}).Draw(t, "how"))
	}
	return m
}

func drawnToleration(t *rapid.T) corev1.Toleration {
	out := corev1.Toleration{Key: drawnName.Draw(t, "taint"), Effect: corev1.TaintEffectNoExecute}
	out.Operator = rapid.SampledFrom([]corev1.TolerationOperator{"", "Equal", "Exists"}).Draw(t, "operator")
	if out.Operator != "Exists" {
		out.Value = rapid.SampledFrom([]string{"", "x"}).Draw(t, "taint value")
	}
	out.TolerationSeconds = rapid.SampledFrom([]*int64{nil, new(int64(60)), new(int64(300))}).Draw(t, "seconds")
	return out
}

func drawnMap(t *rapid.T, what string, keys ...string) map[string]string {
	if !rapid.Bool().Draw(t, "has "+what) {
		return nil
	}
	return rapid.MapOfN(rapid.SampledFrom(keys), rapid.SampledFrom([]string{"1", "1", "2"}), 1, 2).Draw(t, what)
}

func drawnContainer(t *rapid.T, name string, volumes []corev1.Volume) corev1.Container {
	c := corev1.Container{Name: name, Image: rapid.SampledFrom([]string{"i", "i", "j"}).Draw(t, "image")}
	c.Env = drawnList(t, "container's env", 3, drawnEnv, func(e corev1.EnvVar) string { return e.Name })
	if len(c.Env) > 0 && sometimes(t, "a variable stands there twice") {
		c.Env = append(c.Env, corev1.EnvVar{Name: c.Env[0].Name, Value: "1"})
	}
	c.EnvFrom = drawnList(t, "container's envFrom", 1, drawnEnvFrom, envFromKey)
	if len(volumes) > 0 {
		c.VolumeMounts = drawnList(t, "container's mounts", 2, func(t *rapid.T) corev1.VolumeMount { return drawnMount(t, volumes) },
			func(m corev1.VolumeMount) string { return m.MountPath })
	}
	if sometimes(t, "has a command") {
		c.Command = []string{drawnValue.Draw(t, "command")}
	}
	if sometimes(t, "has args") {
		c.Args = []string{"x", drawnName.Draw(t, "arg")}
	}
	if sometimes(t, "has ports") {
		c.Ports = []corev1.ContainerPort{{ContainerPort: int32(rapid.IntRange(1, 2).Draw(t, "port"))}}
	}
	if sometimes(t, "has limits") {
		c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse(rapid.SampledFrom([]string{"0.5", "500m", "1"}).Draw(t, "cpu"))}
	}
	if sometimes(t, "has a security context") {
		c.SecurityContext = &corev1.SecurityContext{Privileged: drawnFlag(t), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	}
	return c
}

func drawnSelector(t *rapid.T) metav1.LabelSelector {
	var s metav1.LabelSelector
	for range rapid.IntRange(0, 2).Draw(t, "terms") {
		key := "use-" + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
		if rapid.Bool().Draw(t, "is a label") {
			if s.MatchLabels == nil {
				s.MatchLabels = map[string]string{}
			}
			s.MatchLabels[key] = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "label")
			continue
		}
		r := metav1.LabelSelectorRequirement{Key: key, Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{
			metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
		}).Draw(t, "operator")}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "2", "3"}), 1, 2, rapid.ID[string]).Draw(t, "values")
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return s
}

// drawnPodDefault draws a PodDefault with some of the fields that can be exported.
func drawnPodDefault(t *rapid.T, name string) *kubeflowv1alpha1.PodDefault {
	pd := &kubeflowv1alpha1.PodDefault{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kubeflowv1alpha1.PodDefaultKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, ResourceVersion: "7"},
	}
	s := &pd.Spec
	s.Selector = drawnSelector(t)
	s.Priority = int32(rapid.IntRange(-1, 1).Draw(t, "priority"))
	s.ConflictPolicy = rapid.SampledFrom([]kubeflowv1alpha1.ConflictPolicy{"", kubeflowv1alpha1.ConflictKubeflow, kubeflowv1alpha1.ConflictDeny}).Draw(t, "conflict policy")
	s.Env = drawnList(t, "env", 2, drawnEnv, func(e corev1.EnvVar) string { return e.Name })
	s.EnvFrom = drawnList(t, "envFrom", 2, drawnEnvFrom, envFromKey)
	s.Volumes = drawnList(t, "volumes", 2, drawnVolume, func(v corev1.Volume) string { return v.Name })
	if len(s.Volumes) > 0 {
		s.VolumeMounts = drawnList(t, "mounts", 2, func(t *rapid.T) corev1.VolumeMount { return drawnMount(t, s.Volumes) },
			func(m corev1.VolumeMount) string { return m.MountPath })
	}
	s.Tolerations = drawnList(t, "tolerations", 2, drawnToleration, func(t corev1.Toleration) string { return fmt.Sprint(t.Key, t.Operator == "Exists", t.Value) })
	s.ImagePullSecrets = drawnList(t, "pull secrets", 2, drawnSecret, func(r corev1.LocalObjectReference) string { return r.Name })
	s.HostAliases = drawnList(t, "host aliases", 1, drawnAlias, func(a corev1.HostAlias) string { return a.IP })
	s.ResourceClaims = drawnList(t, "resource claims", 1, drawnClaim, func(r corev1.PodResourceClaim) string { return r.Name })
	values := drawnValues(t)
	s.SchedulerName, s.HostUsers, s.ShareProcessNamespace, s.EnableServiceLinks = values.SchedulerName, values.HostUsers, values.ShareProcessNamespace, values.EnableServiceLinks
	s.DNSPolicy, s.ActiveDeadlineSeconds, s.SchedulingGates, s.ReadinessGates = values.DNSPolicy, values.ActiveDeadlineSeconds, values.SchedulingGates, values.ReadinessGates
	s.TerminationMessagePolicy = drawnMessages.Draw(t, "messages")
	s.Labels = drawnMap(t, "labels", "team", "example.com/tier", "use-a")
	s.Annotations = drawnMap(t, "annotations", "a", "example.com/b_c", "c")
	s.NodeSelector = drawnMap(t, "node selector", "a", "b")
	s.ServiceAccountName = rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "service account")
	s.AutomountServiceAccountToken = drawnFlag(t)
	if sometimes(t, "has a command") {
		s.Command = []string{drawnValue.Draw(t, "command")}
	}
	if sometimes(t, "has args") {
		s.Args = []string{"x", drawnName.Draw(t, "arg")}
	}
	if sometimes(t, "has a sidecar") {
		s.Sidecars = []corev1.Container{drawnContainer(t, "side-"+drawnName.Draw(t, "sidecar"), s.Volumes)}
	}
	if sometimes(t, "has an init container") {
		c := drawnContainer(t, rapid.SampledFrom([]string{"side-a", "init-a", "init-b"}).Draw(t, "init container"), s.Volumes)
		if rapid.Bool().Draw(t, "is native") {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		s.InitContainers = []corev1.Container{c}
	}
	return pd
}

func drawnSecret(t *rapid.T) corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: drawnName.Draw(t, "pull secret")}
}

func drawnAlias(t *rapid.T) corev1.HostAlias {
	return corev1.HostAlias{IP: "10.0.0.1", Hostnames: []string{drawnName.Draw(t, "host")}}
}

func drawnClaim(t *rapid.T) corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: drawnName.Draw(t, "claim"), ResourceClaimName: new(drawnName.Draw(t, "claimed"))}
}

var drawnMessages = rapid.SampledFrom([]corev1.TerminationMessagePolicy{"", "", corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError})

// drawnValues draws fields of a pod with one value, few of them at a time, and gates.
func drawnValues(t *rapid.T) (s corev1.PodSpec) {
	switch rapid.IntRange(0, 12).Draw(t, "single value") {
	case 0:
		s.SchedulerName = rapid.SampledFrom([]string{corev1.DefaultSchedulerName, "x", "y"}).Draw(t, "scheduler")
	case 1:
		s.HostUsers = drawnFlag(t)
	case 2:
		s.ShareProcessNamespace = drawnFlag(t)
	case 3:
		s.EnableServiceLinks = drawnFlag(t)
	case 4:
		s.DNSPolicy = rapid.SampledFrom([]corev1.DNSPolicy{corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSClusterFirstWithHostNet}).Draw(t, "DNS policy")
	case 5:
		s.ActiveDeadlineSeconds = new(rapid.Int64Range(1, 2).Draw(t, "deadline"))
	case 6:
		s.SchedulingGates = []corev1.PodSchedulingGate{{Name: drawnName.Draw(t, "gate")}}
	case 7:
		s.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: corev1.PodConditionType(drawnName.Draw(t, "condition"))}}
	}
	return s
}

// drawnPod draws a pod with fields that PodDefaults may add. It takes some of them from pds.
func drawnPod(t *rapid.T, pds []*kubeflowv1alpha1.PodDefault) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "team-a", Labels: drawnMap(t, "pod labels", "team"),
			Annotations: drawnMap(t, "pod annotations", "a", "example.com/b_c", "z"),
		},
	}
	for _, key := range []string{"use-a", "use-b"} {
		if rapid.Bool().Draw(t, key) {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, key, rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value of "+key))
		}
	}
	s := &pod.Spec
	s.Volumes = drawnList(t, "pod volumes", 2, drawnVolume, func(v corev1.Volume) string { return v.Name })
	for i := range rapid.IntRange(1, 2).Draw(t, "containers") {
		s.Containers = append(s.Containers, drawnContainer(t, fmt.Sprintf("main-%d", i), s.Volumes))
	}
	if sometimes(t, "a mesh proxy") {
		s.Containers = append(s.Containers, drawnContainer(t, rapid.SampledFrom([]string{"istio-proxy", "linkerd-proxy"}).Draw(t, "proxy"), nil))
	}
	if sometimes(t, "a sidecar is there") {
		s.Containers = append(s.Containers, drawnContainer(t, "side-"+drawnName.Draw(t, "sidecar"), nil))
	}
	if sometimes(t, "an init container is there") {
		s.InitContainers = append(s.InitContainers, drawnContainer(t, rapid.SampledFrom([]string{"init-a", "side-b"}).Draw(t, "init container"), nil))
	}
	s.Tolerations = drawnList(t, "pod tolerations", 3, drawnToleration, func(t corev1.Toleration) string { return fmt.Sprint(t) })
	s.ImagePullSecrets = drawnList(t, "pod's pull secrets", 2, drawnSecret, func(r corev1.LocalObjectReference) string { return r.Name })
	s.HostAliases = drawnList(t, "pod's host aliases", 1, drawnAlias, func(a corev1.HostAlias) string { return a.IP })
	s.ResourceClaims = drawnList(t, "pod's resource claims", 1, drawnClaim, func(r corev1.PodResourceClaim) string { return r.Name })
	values := drawnValues(t)
	s.SchedulerName, s.HostUsers, s.ShareProcessNamespace, s.EnableServiceLinks = values.SchedulerName, values.HostUsers, values.ShareProcessNamespace, values.EnableServiceLinks
	s.DNSPolicy, s.ActiveDeadlineSeconds, s.SchedulingGates, s.ReadinessGates = values.DNSPolicy, values.ActiveDeadlineSeconds, values.SchedulingGates, values.ReadinessGates
	for i := range s.Containers {
		s.Containers[i].TerminationMessagePolicy = drawnMessages.Draw(t, "container's messages")
	}
	s.NodeSelector = drawnMap(t, "pod's node selector", "a", "c")
	s.ServiceAccountName = rapid.SampledFrom([]string{"", "default", "default", "x"}).Draw(t, "pod's service account")
	if sometimes(t, "pod says whether to mount tokens") {
		s.AutomountServiceAccountToken = drawnFlag(t)
	}
	if len(pds) > 0 && rapid.Bool().Draw(t, "has a part of a PodDefault") {
		takeSome(t, s, &rapid.SampledFrom(pds).Draw(t, "which").Spec)
	}
	if rapid.Bool().Draw(t, "has a token") { // added by the ServiceAccount plugin
		for i := range rapid.IntRange(1, 2).Draw(t, "tokens") {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: fmt.Sprintf("kube-api-access-%d", i), VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}})
		}
		for _, containers := range [][]corev1.Container{s.Containers, s.InitContainers} {
			for i := range containers {
				containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{
					Name: "kube-api-access-0", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true,
				})
			}
		}
	}
	switch rapid.IntRange(0, 19).Draw(t, "exempt") {
	case 0:
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, meta.ExcludeAnnotation, rapid.SampledFrom([]string{"true", "false"}).Draw(t, "exclude"))
	case 1:
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, meta.MirrorAnnotation, "x")
		pod.Spec.NodeName, pod.Spec.ServiceAccountName = "node", "" // or the API server refuses it
	case 2:
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, meta.DecisionsAnnotation, rapid.SampledFrom([]string{"pd-0", "pd-0,pd-1", "other"}).Draw(t, "decisions"))
	case 3:
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, meta.Mark("pd-0"), "6")
	}
	defaultPod(pod)
	return pod
}

// takeSome sets some of a PodDefault's values in a pod.
func takeSome(t *rapid.T, s *corev1.PodSpec, from *kubeflowv1alpha1.PodDefaultSpec) {
	from = from.DeepCopy()
	has := func(name string, list int, key func(int) string) bool {
		for i := range list {
			if key(i) == name {
				return true
			}
		}
		return false
	}
	for _, v := range from.Volumes {
		if !has(v.Name, len(s.Volumes), func(i int) string { return s.Volumes[i].Name }) {
			s.Volumes = append(s.Volumes, v)
		}
	}
	c := &s.Containers[0]
	for _, e := range from.Env {
		if !has(e.Name, len(c.Env), func(i int) string { return c.Env[i].Name }) {
			c.Env = append(c.Env, e)
		}
	}
	if sometimes(t, "it changed a mount") && len(from.VolumeMounts) > 0 {
		from.VolumeMounts[0].ReadOnly = !from.VolumeMounts[0].ReadOnly
	}
	for _, e := range from.EnvFrom {
		if sometimes(t, "it changed a source") && e.SecretRef != nil {
			e.SecretRef.Optional = new(true)
		}
		if !has(envFromKey(e), len(c.EnvFrom), func(i int) string { return envFromKey(c.EnvFrom[i]) }) {
			c.EnvFrom = append(c.EnvFrom, e)
		}
	}
	for _, toleration := range from.Tolerations {
		if rapid.Bool().Draw(t, "has its toleration") {
			toleration.TolerationSeconds = rapid.SampledFrom([]*int64{toleration.TolerationSeconds, new(int64(300)), new(int64(30))}).Draw(t, "other seconds")
			s.Tolerations = append(s.Tolerations, toleration)
		}
	}
	for _, m := range from.VolumeMounts {
		if !has(m.MountPath, len(c.VolumeMounts), func(i int) string { return c.VolumeMounts[i].MountPath }) {
			c.VolumeMounts = append(c.VolumeMounts, m)
		}
	}
	for _, side := range from.Sidecars {
		if !has(side.Name, len(s.Containers), func(i int) string { return s.Containers[i].Name }) && rapid.Bool().Draw(t, "has its sidecar") {
			s.Containers = append(s.Containers, side)
		}
	}
}
