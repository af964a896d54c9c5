// SPDX-License-Identifier: Apache-2.0

// Package values knows which values the API server's validation accepts, as far as policies often set them.
package values

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Consistent reports whether fields of a pod that policies may set fit together.
func Consistent(pod *corev1.Pod) bool {
	var names []string
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if slices.Contains(names, c.Name) {
			return false
		}
		names = append(names, c.Name)
		for name, request := range c.Resources.Requests {
			if limit, limited := c.Resources.Limits[name]; limited && request.Cmp(limit) > 0 {
				return false
			}
		}
		var ports []string
		for _, p := range c.Ports {
			key := string(p.Protocol) + strconv.Itoa(int(p.ContainerPort))
			if slices.Contains(ports, key) || p.HostPort != 0 {
				return false
			}
			ports = append(ports, key)
		}
		if s := c.SecurityContext; s != nil && s.Privileged != nil && *s.Privileged && s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation {
			return false
		}
	}
	return true
}

// Unchecked returns the first path of a change whose value is not known to be valid; empty if all are.
func Unchecked(change jsonpatch.Operation, isPod bool) string {
	switch {
	case change.Op == jsonpatch.Remove:
		if optional.MatchString(change.Path) {
			return ""
		}
		return change.Path
	case change.Op != jsonpatch.Add && change.Op != jsonpatch.Replace:
		return change.Path
	}
	var value any
	if err := json.Unmarshal(change.Value, &value); err != nil {
		return change.Path
	}
	return uncheckedLeaf(change.Path, value, isPod)
}

func uncheckedLeaf(path string, value any, isPod bool) string {
	switch in := value.(type) {
	case map[string]any:
		for key, value := range in {
			if at := uncheckedLeaf(path+"/"+jsonpatch.Pointer(key)[1:], value, isPod); at != "" {
				return at
			}
		}
		return ""
	case []any:
		for i, value := range in {
			if at := uncheckedLeaf(path+"/"+strconv.Itoa(i), value, isPod); at != "" {
				return at
			}
		}
		return ""
	}
	if ofMetadata.MatchString(path) { // it has been validated
		return ""
	}
	if isPod {
		for _, leaf := range podLeaves {
			if leaf.path.MatchString(path) && leaf.valid(value) {
				return ""
			}
		}
	}
	return path
}

var (
	ofMetadata = regexp.MustCompile(`^/metadata/(labels|annotations|finalizers)(/|$)`)
	// optional are paths that may be removed.
	optional = regexp.MustCompile(`^/metadata/(labels|annotations|finalizers)(/|$)|^/spec/(containers|initContainers)/\d+/(env|args|command|workingDir|securityContext)(/\d+)?$`)
)

// A podLeaf is a field of a pod with what the API server accepts there:
// k8s.io/kubernetes/pkg/apis/core/validation.
type podLeaf struct {
	path  *regexp.Regexp
	valid func(any) bool
}

var podLeaves = []podLeaf{
	container(`name`, ofText(func(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 })),
	container(`image`, ofText(func(s string) bool { return s != "" && strings.TrimSpace(s) == s })),
	container(`imagePullPolicy`, ofText(oneOf("Always", "IfNotPresent", "Never"))),
	container(`(command|args)/(\d+|-)`, ofText(any1)),
	container(`(workingDir|terminationMessagePath)`, ofText(func(s string) bool { return s != "" })),
	container(`terminationMessagePolicy`, ofText(oneOf("File", "FallbackToLogsOnError"))),
	container(`env/(\d+|-)/name`, ofText(func(s string) bool { return len(validation.IsEnvVarName(s)) == 0 })),
	container(`env/(\d+|-)/value`, ofText(any1)),
	container(`ports/(\d+|-)/containerPort`, between(1, 65535)),
	container(`ports/(\d+|-)/protocol`, ofText(oneOf("TCP", "UDP", "SCTP"))),
	container(`resources/(limits|requests)/(cpu|memory|ephemeral-storage)`, ofText(isQuantity)),
	container(`securityContext/(privileged|allowPrivilegeEscalation|runAsNonRoot|readOnlyRootFilesystem)`, isBool),
	{regexp.MustCompile(`^/spec/(automountServiceAccountToken|enableServiceLinks)$`), isBool},
	{regexp.MustCompile(`^/spec/terminationGracePeriodSeconds$`), between(0, 1<<53)},
	{regexp.MustCompile(`^/spec/restartPolicy$`), ofText(oneOf("Always", "OnFailure", "Never"))},
	{regexp.MustCompile(`^/spec/nodeSelector/[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`), ofText(func(s string) bool { return len(validation.IsValidLabelValue(s)) == 0 })},
}

func container(path string, valid func(any) bool) podLeaf {
	return podLeaf{regexp.MustCompile(`^/spec/(containers|initContainers)/(\d+|-)/` + path + `$`), valid}
}

func ofText(valid func(string) bool) func(any) bool {
	return func(value any) bool { s, ok := value.(string); return ok && valid(s) }
}

func oneOf(values ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(values, s) }
}

func between(low, high float64) func(any) bool {
	return func(value any) bool { n, ok := value.(float64); return ok && n >= low && n <= high }
}

func any1(string) bool { return true }

func isBool(value any) bool { _, ok := value.(bool); return ok }

func isQuantity(s string) bool {
	q, err := resource.ParseQuantity(s)
	return err == nil && q.Sign() >= 0
}
