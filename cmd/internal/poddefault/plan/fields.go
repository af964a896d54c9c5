// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Lists that are read only if a PodDefault adds to them. Keys are Kubernetes' own where
// they exist (k8s.io/api/core/v1, patchMergeKey and listMapKey).
var (
	spreadKind        = &ListKind{Name: "topologySpreadConstraint", key: spreadKey, differences: exactly[corev1.TopologySpreadConstraint](dropNothing)}
	hostAliasKind     = &ListKind{Name: "hostAlias", member: "ip", differences: Subset}
	PortKind          = &ListKind{Name: "port", key: portKey, differences: portDifferences}
	DeviceKind        = &ListKind{Name: "volumeDevice", member: "devicePath", differences: exactly[corev1.VolumeDevice](dropNothing)}
	ClaimKind         = &ListKind{Name: "resource claim", member: "name", differences: exactly[corev1.ResourceClaim](dropNothing)}
	PodClaimKind      = &ListKind{Name: "resource claim", member: "name", differences: exactly[corev1.PodResourceClaim](dropNothing)}
	GateKind          = &ListKind{Name: "schedulingGate", member: "name", differences: never}
	readinessGateKind = &ListKind{Name: "readinessGate", member: "conditionType", differences: never}
	optionKind        = &ListKind{Name: "dnsConfig option", member: "name", differences: exactly[corev1.PodDNSConfigOption](dropNothing)}
	NameserverKind    = &ListKind{Name: "nameserver", key: Text, differences: never}
	SearchKind        = &ListKind{Name: "DNS search domain", key: Text, differences: never}
	GroupKind         = &ListKind{Name: "supplementalGroup", key: Text, differences: never}
	SysctlKind        = &ListKind{Name: "sysctl", member: "name", differences: exactly[corev1.Sysctl](dropNothing)}

	// Affinity terms have no key: each is identified by its content.
	preferredNodeKind    = &ListKind{Name: "preferred node affinity", key: typed[corev1.PreferredSchedulingTerm], differences: never}
	podTermKind          = &ListKind{Name: "pod affinity", key: typed[corev1.PodAffinityTerm], differences: never}
	preferredPodTermKind = &ListKind{Name: "preferred pod affinity", key: typed[corev1.WeightedPodAffinityTerm], differences: never}
)

func dropNothing(map[string]any) {}

func never(_, _ jsontext.Value) []string { return nil }

// Text uses a string or number as its own key.
func Text(element jsontext.Value) []byte {
	if element.Kind() != '"' {
		return bytes.TrimSpace(element)
	}
	r := rawjson.NewReader(element)
	key, _ := r.String()
	return key
}

// typed identifies an element by all fields of its type.
func typed[T any](element jsontext.Value) []byte {
	var known T
	if json.Unmarshal(element, &known) != nil {
		return element
	}
	return Encode(&known)
}

func spreadKey(element jsontext.Value) []byte {
	key := MemberText("topologyKey")(element)
	return append(append(append([]byte{}, key...), ' '), MemberText("whenUnsatisfiable")(element)...)
}

func portKey(element jsontext.Value) []byte {
	key := append(append([]byte{}, bytes.TrimSpace(Member(element, "containerPort"))...), '/')
	if protocol := MemberText("protocol")(element); len(protocol) > 0 {
		return append(key, protocol...)
	}
	return append(key, "TCP"...)
}

// portDifferences ignores the protocol, which is in the key. The API server sets
// hostPort for pods with hostNetwork, so only wanted fields count.
func portDifferences(want, have jsontext.Value) []string {
	w, _ := Decode(want).(map[string]any)
	delete(w, "protocol")
	return Unmet(nil, "", w, Decode(have))
}

// compileFields prepares fields that are not read for every pod.
func (c compiler) compileFields(spec *kubeflowv1alpha1.PodDefaultSpec) {
	if s := spec.ContainerSelector; s != nil {
		c.Target = s.DeepCopy()
	}
	for _, f := range []struct {
		name  string
		value any // not set if it is the empty string or nil
		rule  *ValueRule
	}{
		{"serviceAccountName", spec.ServiceAccountName, ServiceAccountRule},
		{AutomountField, spec.AutomountServiceAccountToken, automountRule},
		{"priorityClassName", spec.PriorityClassName, priorityClassRule},
		{"runtimeClassName", spec.RuntimeClassName, runtimeClassRule},
		{"terminationGracePeriodSeconds", spec.TerminationGracePeriodSeconds, graceRule},
		{"schedulerName", spec.SchedulerName, schedulerRule},
		{"hostUsers", spec.HostUsers, plainRule},
		{"shareProcessNamespace", spec.ShareProcessNamespace, plainRule},
		{"enableServiceLinks", spec.EnableServiceLinks, serviceLinksRule},
		{"dnsPolicy", spec.DNSPolicy, dnsPolicyRule},
		{"activeDeadlineSeconds", spec.ActiveDeadlineSeconds, plainRule},
	} {
		if value := Encode(f.value); string(value) != "null" && string(value) != `""` {
			c.PodValues = append(c.PodValues, FieldValue{[]string{f.name}, value, f.rule})
		}
	}
	for _, e := range podmeta.Entries(spec.NodeSelector) {
		c.PodValues = append(c.PodValues, FieldValue{[]string{"nodeSelector", e.Key}, meta.Quote(e.Value), plainRule})
	}
	c.PodLists = appendList(c.origin, c.PodLists, spreadKind, spec.TopologySpreadConstraints, "topologySpreadConstraints")
	c.PodLists = appendList(c.origin, c.PodLists, hostAliasKind, spec.HostAliases, "hostAliases")
	c.PodLists = appendList(c.origin, c.PodLists, PodClaimKind, spec.ResourceClaims, "resourceClaims")
	c.PodLists = appendList(c.origin, c.PodLists, GateKind, spec.SchedulingGates, "schedulingGates")
	c.PodLists = appendList(c.origin, c.PodLists, readinessGateKind, spec.ReadinessGates, "readinessGates")
	if dns := spec.DNSConfig; dns != nil {
		c.PodLists = appendList(c.origin, c.PodLists, NameserverKind, dns.Nameservers, "dnsConfig", "nameservers")
		c.PodLists = appendList(c.origin, c.PodLists, SearchKind, dns.Searches, "dnsConfig", "searches")
		c.PodLists = appendList(c.origin, c.PodLists, optionKind, dns.Options, "dnsConfig", "options")
	}
	c.compileAffinity(spec.Affinity)
	c.compileSecurity(spec.PodSecurityContext, spec.ContainerSecurityContext)

	if len(spec.Command) > 0 {
		c.ContainerValues = append(c.ContainerValues, FieldValue{[]string{"command"}, Encode(spec.Command), commandRule})
	}
	if len(spec.Args) > 0 {
		c.ContainerValues = append(c.ContainerValues, FieldValue{[]string{"args"}, Encode(spec.Args), commandRule})
	}
	if spec.TerminationMessagePolicy != "" {
		c.ContainerValues = append(c.ContainerValues, FieldValue{[]string{"terminationMessagePolicy"}, Encode(spec.TerminationMessagePolicy), messagePolicyRule})
	}
	if spec.Lifecycle != nil {
		c.ContainerValues = fieldsOf(c.ContainerValues, Encode(spec.Lifecycle), lifecycleRule, nil, "lifecycle")
	}
	c.ContainerLists = appendList(c.origin, c.ContainerLists, PortKind, spec.Ports, "ports")
	c.ContainerLists = appendList(c.origin, c.ContainerLists, DeviceKind, spec.VolumeDevices, "volumeDevices")
	c.compileResources(spec.Resources)
}

// A FieldList is what a PodDefault adds to a list of the pod's spec or of containers.
type FieldList struct {
	Kind   *ListKind
	Tokens []string
	Items  []Item
	ID     string // pointer to it below the pod's spec or the container
}

// A FieldValue is a field's value in a PodDefault: a scalar, or a value that is set as
// a whole.
type FieldValue struct {
	Tokens []string
	Value  jsontext.Value
	Rule   *ValueRule
}

// Name names the field in messages.
func (f *FieldValue) Name() string {
	if len(f.Tokens) == 2 && f.Tokens[0] == "nodeSelector" {
		return "nodeSelector " + f.Tokens[1]
	}
	return strings.Join(f.Tokens, ".")
}

// appendList adds a list of elements, unless it is empty.
func appendList[T any](c *Plan, lists []FieldList, kind *ListKind, values []T, tokens ...string) []FieldList {
	if len(values) == 0 {
		return lists
	}
	return append(lists, FieldList{kind, tokens, compileList(c, kind, values), jsonpatch.Pointer(tokens...)})
}

// trailingSlash returns the mount path that differs only by a trailing slash.
func trailingSlash(path string) string {
	if without, cut := strings.CutSuffix(path, "/"); cut {
		return without
	}
	return path + "/"
}

// empty reports whether Kubernetes treats a value as unset.
func empty(value jsontext.Value) bool {
	switch value.Kind() {
	case 'n':
		return true
	case '[':
		filled := false
		r := rawjson.NewReader(value)
		r.Array(func(int) { filled = true })
		return !filled
	}
	return false
}

// AutomountField is a field that is not a credential by its name.
const AutomountField = "automountServiceAccountToken"

// Security contexts are merged field by field. Every pod has an empty one, and
// replacing the whole would break pods that set fields themselves.

// The lists of capabilities.
var (
	CapabilityAddKind  = &ListKind{Name: "capability", key: Text, differences: never}
	CapabilityDropKind = &ListKind{Name: "dropped capability", key: Text, differences: never}
)

func (c compiler) compileSecurity(pod *corev1.PodSecurityContext, container *corev1.SecurityContext) {
	if pod != nil {
		c.PodValues = fieldsOf(c.PodValues, Encode(pod), plainRule, []string{"supplementalGroups", "sysctls"}, "securityContext")
		c.PodLists = appendList(c.origin, c.PodLists, GroupKind, pod.SupplementalGroups, "securityContext", "supplementalGroups")
		c.PodLists = appendList(c.origin, c.PodLists, SysctlKind, pod.Sysctls, "securityContext", "sysctls")
	}
	if container == nil {
		return
	}
	c.ContainerValues = fieldsOf(c.ContainerValues, Encode(container), plainRule, []string{"capabilities"}, "securityContext")
	if capabilities := container.Capabilities; capabilities != nil {
		c.ContainerLists = appendList(c.origin, c.ContainerLists, CapabilityAddKind, capabilities.Add, "securityContext", "capabilities", "add")
		c.ContainerLists = appendList(c.origin, c.ContainerLists, CapabilityDropKind, capabilities.Drop, "securityContext", "capabilities", "drop")
	}
}

// Fields of an affinity.
const (
	Required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

// compileAffinity splits required node terms. A term without expressions selects no
// node, and has no effect next to other terms.
func (c compiler) compileAffinity(affinity *corev1.Affinity) {
	if affinity == nil {
		return
	}
	if node := affinity.NodeAffinity; node != nil {
		if terms := node.RequiredDuringSchedulingIgnoredDuringExecution; terms != nil {
			for i := range terms.NodeSelectorTerms {
				if term := &terms.NodeSelectorTerms[i]; len(term.MatchExpressions)+len(term.MatchFields) > 0 {
					c.NodeTerms = append(c.NodeTerms, Encode(term))
				}
			}
		}
		c.PodLists = appendList(c.origin, c.PodLists, preferredNodeKind, node.PreferredDuringSchedulingIgnoredDuringExecution, "affinity", "nodeAffinity", preferred)
	}
	if pod := affinity.PodAffinity; pod != nil {
		c.PodLists = appendList(c.origin, c.PodLists, podTermKind, pod.RequiredDuringSchedulingIgnoredDuringExecution, "affinity", "podAffinity", Required)
		c.PodLists = appendList(c.origin, c.PodLists, preferredPodTermKind, pod.PreferredDuringSchedulingIgnoredDuringExecution, "affinity", "podAffinity", preferred)
	}
	if pod := affinity.PodAntiAffinity; pod != nil {
		c.PodLists = appendList(c.origin, c.PodLists, podTermKind, pod.RequiredDuringSchedulingIgnoredDuringExecution, "affinity", "podAntiAffinity", Required)
		c.PodLists = appendList(c.origin, c.PodLists, preferredPodTermKind, pod.PreferredDuringSchedulingIgnoredDuringExecution, "affinity", "podAntiAffinity", preferred)
	}
}

// A Quantity is a request or limit that a PodDefault sets for containers.
type Quantity struct {
	List, Name string
	Value      jsontext.Value
	Parsed     resource.Quantity
}

// compileResources compiles limits first, because requests are compared with them.
func (c compiler) compileResources(wanted *corev1.ResourceRequirements) {
	if wanted == nil {
		return
	}
	for _, list := range []struct {
		name   string
		values corev1.ResourceList
	}{{"limits", wanted.Limits}, {"requests", wanted.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			parsed := list.values[name]
			c.Resources = append(c.Resources, Quantity{list.name, string(name), meta.Quote(parsed.String()), parsed})
		}
	}
	c.ContainerLists = appendList(c.origin, c.ContainerLists, ClaimKind, wanted.Claims, "resources", "claims")
}

// OnlyContainers reports whether the object adds nothing but that.
func (c *Plan) OnlyContainers() bool {
	return len(c.Volumes)+len(c.Tolerations)+len(c.PullSecrets)+len(c.InitContainers)+len(c.Containers)+
		len(c.Annotations)+len(c.Labels)+len(c.PodLists)+len(c.PodValues)+len(c.NodeTerms) == 0 &&
		!slices.ContainsFunc(c.ContainerValues, func(f FieldValue) bool { return f.Rule.Command })
}

// A compiler encodes the additions of an object.
type compiler struct {
	origin *Plan
	*Additions
}

// compileSpec encodes the additions.
func (c compiler) compileSpec(spec *kubeflowv1alpha1.PodDefaultSpec) {
	c.Env = compileList(c.origin, EnvKind, spec.Env)
	c.EnvFrom = compileList(c.origin, EnvFromKind, spec.EnvFrom)
	c.VolumeMounts = compileList(c.origin, MountKind, spec.VolumeMounts)
	c.TrailingSlash = make([]string, len(c.VolumeMounts))
	for i, mount := range c.VolumeMounts {
		c.TrailingSlash[i] = trailingSlash(mount.Key)
	}
	c.Volumes = compileList(c.origin, VolumeKind, spec.Volumes)
	c.Tolerations = compileList(c.origin, TolerationKind, spec.Tolerations)
	c.PullSecrets = compileList(c.origin, PullSecretKind, spec.ImagePullSecrets)
	c.InitContainers = compileList(c.origin, ContainerKind, spec.InitContainers)
	c.Containers = compileList(c.origin, ContainerKind, spec.Sidecars)
	c.positions = spec.Positions
	c.compileFields(spec)
	c.Clashes = c.mayClash()
}

// compileList encodes the elements. The first element with a key wins. [validate.Spec] reports
// where that is wrong.
func compileList[T any](c *Plan, kind *ListKind, values []T) []Item {
	if len(values) == 0 {
		return nil
	}
	items := make([]Item, 0, len(values))
	seen := make(map[string]bool, len(values))
	for i := range values {
		value := Encode(&values[i])
		added := Item{Key: string(kind.keyOf(value)), Value: value, Origin: c}
		if !seen[added.Key] {
			seen[added.Key] = true
			items = append(items, added)
		}
	}
	return items
}
