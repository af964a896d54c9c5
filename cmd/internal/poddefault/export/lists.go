// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// list is what an object adds to one list of the pod or of a container.
type list struct {
	field    string
	title    string // of an element, for messages
	keyed    string // the key field, if there is one: see narrowed
	elements []element
}

// element is a wanted element. Its expressions refer to an element e of the pod.
type element struct {
	index     int    // in the object
	key       string // for messages
	same      string // whether e has the key
	satisfied string // whether e, with the same key, satisfies it
	value     any    // see tree
}

// of returns an expression for the pod's list.
func (l list) of(holder string) string { return holder + ".?" + l.field + ".orValue([])" }

// narrowed returns an expression for the list elements with any wanted key. Searching
// the whole list for each wanted element would be too expensive for large pods. Map
// lookups are nearly free.
func (l list) narrowed(holder string) string {
	if l.keyed == "" {
		return l.of(holder)
	}
	keys := map[string]string{}
	for _, e := range l.elements {
		keys[e.key] = ""
	}
	return "[" + literal(keys) + "].map(K, " + l.of(holder) + ".filter(e, e.?" + l.keyed + ".orValue(\"\") in K))[0]"
}

// newList makes a list with elements identified by key. The first element with a key
// wins, as in the webhook.
func newList[T any](field, title string, values []T, key func(*T) string, same func(*T) string, satisfied func(wanted any) string) list {
	l := list{field: field, title: title}
	for i := range values {
		e := element{index: i, key: key(&values[i]), same: same(&values[i]), value: tree(&values[i])}
		if slices.ContainsFunc(l.elements, func(other element) bool { return other.same == e.same }) {
			continue
		}
		e.satisfied = satisfied(e.value)
		l.elements = append(l.elements, e)
	}
	return l
}

func text(field, value string) string { return "e.?" + field + ".orValue(\"\") == " + quote(value) }

func always(any) string { return "true" }

// podLists returns the lists of the pod's spec except containers and tolerations.
func podLists(spec *kubeflowv1alpha1.PodDefaultSpec) []list {
	volume := func(v *corev1.Volume) string { return v.Name }
	secret := func(r *corev1.LocalObjectReference) string { return r.Name }
	alias := func(a *corev1.HostAlias) string { return a.IP }
	return []list{
		newList("volumes", "volume", spec.Volumes, volume, func(v *corev1.Volume) string { return text("name", v.Name) }, satisfiesVolume),
		newList("imagePullSecrets", "imagePullSecret", spec.ImagePullSecrets, secret,
			func(r *corev1.LocalObjectReference) string { return text("name", r.Name) }, always),
		newList("hostAliases", "hostAlias", spec.HostAliases, alias, func(a *corev1.HostAlias) string { return text("ip", a.IP) }, satisfiesSubset),
		newList("resourceClaims", "resource claim", spec.ResourceClaims, func(r *corev1.PodResourceClaim) string { return r.Name },
			func(r *corev1.PodResourceClaim) string { return text("name", r.Name) }, satisfiesExactly[corev1.PodResourceClaim](nil)),
		newList("schedulingGates", "schedulingGate", spec.SchedulingGates, func(g *corev1.PodSchedulingGate) string { return g.Name },
			func(g *corev1.PodSchedulingGate) string { return text("name", g.Name) }, always),
		newList("readinessGates", "readinessGate", spec.ReadinessGates, func(g *corev1.PodReadinessGate) string { return string(g.ConditionType) },
			func(g *corev1.PodReadinessGate) string { return text("conditionType", string(g.ConditionType)) }, always),
	}
}

// containerLists returns the containers that the object adds, in order.
func containerLists(spec *kubeflowv1alpha1.PodDefaultSpec) []list {
	name := func(c *corev1.Container) string { return c.Name }
	same := func(c *corev1.Container) string { return text("name", c.Name) }
	return []list{
		newList("initContainers", "container", spec.InitContainers, name, same, satisfiesSubset),
		newList("containers", "container", spec.Sidecars, name, same, satisfiesSubset),
	}
}

// scalar is a field with one value, of the pod's spec or of every container.
type scalar struct {
	field string
	value any
	// unset is the API server's default, which counts as unset; nil if there is none.
	unset any
}

// podScalars returns the fields that the object sets in the pod's spec.
func podScalars(spec *kubeflowv1alpha1.PodDefaultSpec) []scalar {
	return given(
		scalar{"activeDeadlineSeconds", tree(spec.ActiveDeadlineSeconds), nil}, scalar{"dnsPolicy", tree(spec.DNSPolicy), "ClusterFirst"},
		scalar{"enableServiceLinks", tree(spec.EnableServiceLinks), true}, scalar{"hostUsers", tree(spec.HostUsers), nil},
		scalar{"schedulerName", tree(spec.SchedulerName), corev1.DefaultSchedulerName}, scalar{"shareProcessNamespace", tree(spec.ShareProcessNamespace), nil},
	)
}

// ownScalars returns the fields that the object sets in every container.
func ownScalars(spec *kubeflowv1alpha1.PodDefaultSpec) []scalar {
	return given(scalar{"terminationMessagePolicy", tree(spec.TerminationMessagePolicy), "File"})
}

func given(scalars ...scalar) []scalar {
	return slices.DeleteFunc(scalars, func(s scalar) bool { return s.value == nil || s.value == "" })
}

// add sets the field, unless the holder has a value.
func (s scalar) add(path, holder string) string {
	fixed := "has(" + holder + "." + s.field + ")"
	if s.unset != nil {
		fixed = s.differs(holder, s.unset)
	}
	return unless(fixed, operation(path, literalOf(s.value)))
}

// differs reports whether the holder has another value.
func (s scalar) differs(holder string, value any) string {
	return holder + ".?" + s.field + ".orValue(" + literalOf(value) + ") != " + literalOf(value)
}

// command is a list of every container that is set as a whole if it is absent.
type command struct {
	field  string
	values []string
}

// of returns an expression for the list of the container c.
func (c command) of() string { return "c.?" + c.field + ".orValue([])" }

// commandsOf returns the commands that the object has.
func commandsOf(spec *kubeflowv1alpha1.PodDefaultSpec) []command {
	return slices.DeleteFunc([]command{{"command", spec.Command}, {"args", spec.Args}}, func(c command) bool { return len(c.values) == 0 })
}

// ownLists returns the lists of every container.
func ownLists(spec *kubeflowv1alpha1.PodDefaultSpec) []list {
	lists := []list{
		newList("env", "env", spec.Env, func(e *corev1.EnvVar) string { return e.Name },
			func(e *corev1.EnvVar) string { return text("name", e.Name) }, satisfiesExactly[corev1.EnvVar](envDefaults)),
		newList("envFrom", "envFrom", spec.EnvFrom, envFromSources, sameEnvFrom, always),
		newList("volumeMounts", "volumeMount", spec.VolumeMounts, func(m *corev1.VolumeMount) string { return m.MountPath },
			func(m *corev1.VolumeMount) string { return text("mountPath", m.MountPath) }, satisfiesExactly[corev1.VolumeMount](mountDefaults)),
	}
	lists[0].keyed, lists[2].keyed = "name", "mountPath"
	return lists
}

func envFromSources(e *corev1.EnvFromSource) string {
	switch {
	case e.SecretRef != nil:
		return e.SecretRef.Name
	case e.ConfigMapRef != nil:
		return e.ConfigMapRef.Name
	}
	return e.Prefix
}

// sameEnvFrom compares prefix, the names of both sources, and optional.
func sameEnvFrom(e *corev1.EnvFromSource) string {
	configMap, secret, optional := "", "", false
	if e.ConfigMapRef != nil {
		configMap, optional = e.ConfigMapRef.Name, e.ConfigMapRef.Optional != nil && *e.ConfigMapRef.Optional
	}
	if e.SecretRef != nil {
		secret, optional = e.SecretRef.Name, optional || e.SecretRef.Optional != nil && *e.SecretRef.Optional
	}
	return text("prefix", e.Prefix) + " && " + text("configMapRef.?name", configMap) + " && " + text("secretRef.?name", secret) +
		" && (e.?configMapRef.?optional.orValue(false) || e.?secretRef.?optional.orValue(false)) == " + literal(optional)
}

// tolerationsOf returns the object's tolerations, identified by everything but
// tolerationSeconds.
func tolerationsOf(spec *kubeflowv1alpha1.PodDefaultSpec) list {
	same := func(t *corev1.Toleration) string {
		operator := text("operator", string(t.Operator))
		if t.Operator == "" || t.Operator == corev1.TolerationOpEqual {
			operator = "e.?operator.orValue(\"\") in [\"\", \"Equal\"]"
		}
		return text("key", t.Key) + " && " + operator + " && " + text("value", t.Value) + " && " + text("effect", string(t.Effect))
	}
	seconds := func(wanted any) string {
		if s, ok := wanted.(map[string]any)["tolerationSeconds"]; ok {
			return "e.?tolerationSeconds == optional.of(" + literalOf(s) + ")"
		}
		return "!has(e.tolerationSeconds)"
	}
	return newList("tolerations", "toleration", spec.Tolerations, func(t *corev1.Toleration) string { return t.Key }, same, seconds)
}
