// SPDX-License-Identifier: Apache-2.0

// Package immutable knows the fields of Kubernetes' kinds that the API server's validation restricts on
// updates: some may never change, others only in certain ways, or while something else holds.
package immutable

import (
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fields has the restricted fields of kinds. "spec -a -b" stands for all of spec but a and b. A question mark
// begins a field that the API server keeps if the update leaves it out: k8s.io/kubernetes/pkg/apis/*/validation, and the strategies of pkg/registry.
var fields = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                   {"spec"},
	{Kind: "Service"}:               {"?spec.clusterIP", "?spec.clusterIPs", "?spec.ipFamilies", "?spec.healthCheckNodePort", "?spec.ports.nodePort", "spec.loadBalancerClass", "spec.type"},
	{Kind: "Secret"}:                {"type", "immutable", "data"},
	{Kind: "ConfigMap"}:             {"immutable", "data", "binaryData"},
	{Kind: "PersistentVolumeClaim"}: {"spec"},
	{Kind: "PersistentVolume"}:      {"spec"},
	{Kind: "ReplicationController"}: {"spec.selector", "spec.template.metadata.labels"},
	{Kind: "Node"}:                  {"spec.podCIDR", "spec.podCIDRs", "spec.providerID"},

	{Group: "apps", Kind: "Deployment"}:         {"spec.selector", "spec.template.metadata.labels"},
	{Group: "apps", Kind: "ReplicaSet"}:         {"spec.selector", "spec.template.metadata.labels"},
	{Group: "apps", Kind: "DaemonSet"}:          {"spec.selector", "spec.template.metadata.labels"},
	{Group: "apps", Kind: "ControllerRevision"}: {"data"},
	{Group: "apps", Kind: "StatefulSet"}: {
		"spec -replicas -ordinals -template -updateStrategy -persistentVolumeClaimRetentionPolicy -minReadySeconds -revisionHistoryLimit", "spec.template.metadata.labels",
	},
	{Group: "batch", Kind: "Job"}: {"spec -parallelism -activeDeadlineSeconds -backoffLimit -ttlSecondsAfterFinished -suspend"},

	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {"roleRef"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {"roleRef"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              {"value", "preemptionPolicy"},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                     {"handler"},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:               {"spec.controller"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                     {"spec"},
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:              {"spec"},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:               {"addressType"},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {
		"spec",
	},
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:         {"spec"},
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}: {"spec"},
}

// Changed returns the first restricted field that an update of an object changes; empty if there is none.
func Changed(kind schema.GroupKind, old, updated map[string]any) string {
	for _, entry := range fields[kind] {
		path, except, _ := strings.Cut(entry, " ")
		path, kept := strings.CutPrefix(path, "?")
		before, after := at(old, strings.Split(path, ".")), at(updated, strings.Split(path, "."))
		if kept && after == nil || kind == (schema.GroupKind{Kind: "Service"}) && path == "spec.type" && !external(before, after) {
			continue
		}
		if kind.Group == "" && (kind.Kind == "Secret" || kind.Kind == "ConfigMap") && path != "type" && old["immutable"] != true {
			continue
		}
		if kind == (schema.GroupKind{Kind: "Pod"}) {
			before, after = withoutImages(before), withoutImages(after)
		}
		before, after = without(before, except), without(after, except)
		if !reflect.DeepEqual(before, after) {
			return path + below(before, after)
		}
	}
	return ""
}

// external reports whether one of two types of a Service is ExternalName: it has no address.
func external(before, after any) bool { return (before == "ExternalName") != (after == "ExternalName") }

// at returns what is at a path; of lists, that of all elements. Nil if nothing is there.
func at(value any, path []string) any {
	if len(path) == 0 || value == nil {
		return value
	}
	switch in := value.(type) {
	case map[string]any:
		return at(in[path[0]], path[1:])
	case []any:
		var out []any
		for _, element := range in {
			if found := at(element, path); found != nil {
				out = append(out, found)
			}
		}
		if out != nil {
			return out
		}
	}
	return nil
}

// without returns a value without fields, which are written as in "-a -b".
func without(value any, except string) any {
	in, ok := value.(map[string]any)
	if !ok || except == "" {
		return value
	}
	out := map[string]any{}
	for name, field := range in {
		if !strings.Contains(" "+except+" ", " -"+name+" ") {
			out[name] = field
		}
	}
	return out
}

// withoutImages returns the specification of a pod without the images of its containers, which may change.
func withoutImages(spec any) any {
	in, ok := spec.(map[string]any)
	if !ok {
		return spec
	}
	out := map[string]any{}
	for name, field := range in {
		if list, ok := field.([]any); ok && (name == "containers" || name == "initContainers") {
			containers := make([]any, len(list))
			for i := range list {
				containers[i] = without(list[i], "-image")
			}
			field = containers
		}
		out[name] = field
	}
	return out
}

// below returns the path of the first difference of two values, below them.
func below(a, b any) string {
	switch in := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		if !ok {
			return ""
		}
		first := ""
		for _, values := range []map[string]any{in, other} {
			for name := range values {
				if !reflect.DeepEqual(in[name], other[name]) && (first == "" || name < first) {
					first = name
				}
			}
		}
		if first != "" {
			return "." + first + below(in[first], other[first])
		}
	case []any:
		other, ok := b.([]any)
		for i := range in {
			if ok && i < len(other) && !reflect.DeepEqual(in[i], other[i]) {
				return "[" + strconv.Itoa(i) + "]" + below(in[i], other[i])
			}
		}
	}
	return ""
}
