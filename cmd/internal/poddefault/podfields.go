// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Lists that are read only if a PodDefault adds to them. Keys are Kubernetes' own where
// they exist (k8s.io/api/core/v1, patchMergeKey and listMapKey).
var (
	spreadKind = &listKind{
		name: "topologySpreadConstraint", keyName: "topologyKey", key: spreadKey,
		differences: exactly[corev1.TopologySpreadConstraint](dropNothing),
	}
	hostAliasKind = &listKind{name: "hostAlias", keyName: "ip", member: "ip", differences: subset}
	portKind      = &listKind{name: "port", keyName: "containerPort", key: portKey, differences: portDifferences}
	deviceKind    = &listKind{
		name: "volumeDevice", keyName: "devicePath", member: "devicePath",
		differences: exactly[corev1.VolumeDevice](dropNothing),
	}
	claimKind = &listKind{
		name: "resource claim", keyName: "name", member: "name",
		differences: exactly[corev1.ResourceClaim](dropNothing),
	}
	podClaimKind = &listKind{
		name: "resource claim", keyName: "name", member: "name",
		differences: exactly[corev1.PodResourceClaim](dropNothing),
	}
	gateKind          = &listKind{name: "schedulingGate", keyName: "name", member: "name", differences: never}
	readinessGateKind = &listKind{name: "readinessGate", keyName: "conditionType", member: "conditionType", differences: never}
	optionKind        = &listKind{
		name: "dnsConfig option", keyName: "name", member: "name",
		differences: exactly[corev1.PodDNSConfigOption](dropNothing),
	}
	nameserverKind = &listKind{name: "nameserver", keyName: "address", key: text, differences: never}
	searchKind     = &listKind{name: "DNS search domain", keyName: "domain", key: text, differences: never}
	groupKind      = &listKind{name: "supplementalGroup", keyName: "number", key: text, differences: never}
	sysctlKind     = &listKind{
		name: "sysctl", keyName: "name", member: "name",
		differences: exactly[corev1.Sysctl](dropNothing),
	}

	// Affinity terms have no key: each is identified by its content.
	preferredNodeKind    = &listKind{name: "preferred node affinity", keyName: "term", key: typed[corev1.PreferredSchedulingTerm], differences: never}
	podTermKind          = &listKind{name: "pod affinity", keyName: "term", key: typed[corev1.PodAffinityTerm], differences: never}
	preferredPodTermKind = &listKind{name: "preferred pod affinity", keyName: "term", key: typed[corev1.WeightedPodAffinityTerm], differences: never}
)

func dropNothing(map[string]any) {}

func never(_, _ jsontext.Value) []string { return nil }

// text uses a string or number as its own key.
func text(element jsontext.Value) []byte {
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
	return encode(&known)
}

func spreadKey(element jsontext.Value) []byte {
	key := memberText("topologyKey")(element)
	return append(append(append([]byte{}, key...), ' '), memberText("whenUnsatisfiable")(element)...)
}

func portKey(element jsontext.Value) []byte {
	key := append(append([]byte{}, bytes.TrimSpace(member(element, "containerPort"))...), '/')
	if protocol := memberText("protocol")(element); len(protocol) > 0 {
		return append(key, protocol...)
	}
	return append(key, "TCP"...)
}

// portDifferences ignores the protocol, which is in the key. The API server sets
// hostPort for pods with hostNetwork, so only wanted fields count.
func portDifferences(want, have jsontext.Value) []string {
	w, _ := decode(want).(map[string]any)
	delete(w, "protocol")
	return unmet(nil, "", w, decode(have))
}

// compileFields prepares fields that are not read for every pod.
func (c *Compiled) compileFields(spec *kubeflowv1alpha1.PodDefaultSpec) {
	if s := spec.ContainerSelector; s != nil {
		c.target = s.DeepCopy()
	}
	for _, f := range []struct {
		name  string
		value any // not set if it is the empty string or nil
		rule  *valueRule
	}{
		{"serviceAccountName", spec.ServiceAccountName, serviceAccountRule},
		{automountField, spec.AutomountServiceAccountToken, automountRule},
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
		if value := encode(f.value); string(value) != "null" && string(value) != `""` {
			c.podValues = append(c.podValues, fieldValue{[]string{f.name}, value, f.rule})
		}
	}
	c.overwrites = spec.ServiceAccountName != "" || spec.AutomountServiceAccountToken != nil
	for _, e := range entries(spec.NodeSelector) {
		c.podValues = append(c.podValues, fieldValue{[]string{"nodeSelector", e.key}, quote(e.value), plainRule})
	}
	c.podLists = appendList(c, c.podLists, spreadKind, spec.TopologySpreadConstraints, "topologySpreadConstraints")
	c.podLists = appendList(c, c.podLists, hostAliasKind, spec.HostAliases, "hostAliases")
	c.podLists = appendList(c, c.podLists, podClaimKind, spec.ResourceClaims, "resourceClaims")
	c.podLists = appendList(c, c.podLists, gateKind, spec.SchedulingGates, "schedulingGates")
	c.podLists = appendList(c, c.podLists, readinessGateKind, spec.ReadinessGates, "readinessGates")
	if dns := spec.DNSConfig; dns != nil {
		c.podLists = appendList(c, c.podLists, nameserverKind, dns.Nameservers, "dnsConfig", "nameservers")
		c.podLists = appendList(c, c.podLists, searchKind, dns.Searches, "dnsConfig", "searches")
		c.podLists = appendList(c, c.podLists, optionKind, dns.Options, "dnsConfig", "options")
	}
	c.compileAffinity(spec.Affinity)
	c.compileSecurity(spec.PodSecurityContext, spec.ContainerSecurityContext)

	if len(spec.Command) > 0 {
		c.containerValues = append(c.containerValues, fieldValue{[]string{"command"}, encode(spec.Command), commandRule})
	}
	if len(spec.Args) > 0 {
		c.containerValues = append(c.containerValues, fieldValue{[]string{"args"}, encode(spec.Args), commandRule})
	}
	if spec.TerminationMessagePolicy != "" {
		c.containerValues = append(c.containerValues, fieldValue{[]string{"terminationMessagePolicy"}, encode(spec.TerminationMessagePolicy), messagePolicyRule})
	}
	if spec.Lifecycle != nil {
		c.containerValues = fieldsOf(c.containerValues, encode(spec.Lifecycle), lifecycleRule, nil, "lifecycle")
	}
	c.containerLists = appendList(c, c.containerLists, portKind, spec.Ports, "ports")
	c.containerLists = appendList(c, c.containerLists, deviceKind, spec.VolumeDevices, "volumeDevices")
	c.compileResources(spec.Resources)
}
