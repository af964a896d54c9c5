// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// The API server validates an object after policies and webhooks have changed it. Here, its metadata is, and
// a custom resource by its schema, and values of a pod that policies often set. Whether anything else that
// others than Sallyport's webhooks set is valid is not known.

// checkResult returns the refusal of a result that is not valid.
func (e *evaluation) checkResult(ctx context.Context, a *attributes) error {
	object := a.GetObject()
	var changed []*Step
	for _, s := range e.result.Steps {
		_, own := e.own[s.Name[strings.Index(s.Name, "/")+1:]]
		if len(s.Changes) > 0 && (s.Phase != lint.MutatingWebhooks || !own) {
			changed = append(changed, s)
		}
	}
	if object == nil || len(changed) == 0 {
		return nil
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	invalid := apivalidation.ValidateObjectMetaAccessor(m, e.Request.Namespace != "" && m.GetNamespace() != "", func(string, bool) []string { return nil }, field.NewPath("metadata"))
	if m.GetName() == "" { // it is generated
		invalid = slices.DeleteFunc(invalid, func(err *field.Error) bool { return err.Field == "metadata.name" })
	}
	gvk := a.GetKind()
	if e.kinds.definitions.Knows(gvk) {
		at, err := content(object)
		if err != nil {
			return err
		}
		body, _ := at.(map[string]any)
		more, err := e.kinds.definitions.Validate(ctx, gvk, body)
		if err != nil {
			return err
		}
		invalid = append(invalid, more...)
	}
	if len(invalid) > 0 {
		names := make([]string, len(changed))
		for i, s := range changed {
			names[i] = s.Name
		}
		changed[len(changed)-1].Messages = append(changed[len(changed)-1].Messages, "the object is not valid after "+strings.Join(names, ", "))
		return apierrors.NewInvalid(gvk.GroupKind(), m.GetName(), invalid)
	}
	if e.kinds.definitions.Knows(gvk) {
		return nil
	}
	isPod := gvk == corev1.SchemeGroupVersion.WithKind("Pod")
	for _, s := range changed {
		for _, change := range s.Changes {
			if path := unchecked(change.Operation, isPod); path != "" {
				e.result.Unknown = append(e.result.Unknown, s.Name+": it sets "+manifest.FieldPath(jsontext.Pointer(path))+": whether the API server accepts the value")
				break
			}
		}
	}
	if pod, ok := object.(*corev1.Pod); ok && !consistent(pod) {
		e.result.Unknown = append(e.result.Unknown, changed[len(changed)-1].Name+": whether the API server accepts the pod's containers")
	}
	return nil
}

// consistent reports what holds between fields that policies may set.
func consistent(pod *corev1.Pod) bool {
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

// unchecked returns the first path of a change whose value is not known to be valid.
func unchecked(change jsonpatch.Operation, isPod bool) string {
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

func between(least, most float64) func(any) bool {
	return func(value any) bool { n, ok := value.(float64); return ok && n >= least && n <= most }
}

func any1(string) bool { return true }

func isBool(value any) bool { _, ok := value.(bool); return ok }

func isQuantity(s string) bool {
	q, err := resource.ParseQuantity(s)
	return err == nil && q.Sign() >= 0
}
