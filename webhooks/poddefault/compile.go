// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Compiled is a PodDefault made ready for injection: its selector parsed, what it
// adds encoded. It never changes. See [Compile].
type Compiled struct {
	namespace, name, resourceVersion string
	title                            string // for people
	mark                             string // the annotation that says it was applied

	selector labels.Selector // nil if it cannot be parsed
	problem  error           // why the object can never work; nil if it can

	env, envFrom, volumeMounts        []item
	volumes, tolerations, pullSecrets []item
	initContainers, containers        []item
	labels, annotations               []entry
	serviceAccountName                string
	automountToken                    *bool
	command, args                     jsontext.Value
	strayMounts                       []string // volumes that are mounted here but not brought along
}

// An item is one element of a list of the pod.
type item struct {
	key    string // its merge key, see the listKind
	value  jsontext.Value
	origin *Compiled // nil if the pod came with it
}

// An entry is one label or annotation.
type entry struct{ key, value string }

// Compile prepares a PodDefault. An object that can never work is compiled too,
// so that it can be named where it would have been applied: see [Compiled.Problem].
func Compile(pd *kubeflowv1alpha1.PodDefault) *Compiled {
	spec := &pd.Spec
	c := &Compiled{
		namespace: pd.Namespace, name: pd.Name, resourceVersion: pd.ResourceVersion,
		mark:               Mark(pd.Name),
		title:              "PodDefault " + pd.Namespace + "/" + pd.Name,
		serviceAccountName: spec.ServiceAccountName, automountToken: spec.AutomountServiceAccountToken,
		labels: entries(spec.Labels), annotations: entries(spec.Annotations),
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	selector, err := metav1.LabelSelectorAsSelector(&spec.Selector)
	if err != nil {
		problem("spec.selector: %w", err)
	} else {
		c.selector = selector
	}
	c.env = compileList(c, envKind, "spec.env", spec.Env, problem)
	c.envFrom = compileList(c, envFromKind, "spec.envFrom", spec.EnvFrom, nil)
	c.volumeMounts = compileList(c, mountKind, "spec.volumeMounts", spec.VolumeMounts, problem)
	c.volumes = compileList(c, volumeKind, "spec.volumes", spec.Volumes, problem)
	c.tolerations = compileList(c, tolerationKind, "spec.tolerations", spec.Tolerations, nil)
	c.pullSecrets = compileList(c, pullSecretKind, "spec.imagePullSecrets", spec.ImagePullSecrets, nil)
	c.initContainers = compileList(c, containerKind, "spec.initContainers", spec.InitContainers, problem)
	c.containers = compileList(c, containerKind, "spec.sidecars", spec.Sidecars, problem)
	for _, added := range c.initContainers {
		if slices.ContainsFunc(c.containers, func(other item) bool { return other.key == added.key }) {
			problem("container name %q stands in spec.initContainers and in spec.sidecars; choose another for one of them", added.key)
		}
	}
	if len(spec.Command) > 0 {
		c.command = encode(spec.Command)
	}
	if len(spec.Args) > 0 {
		c.args = encode(spec.Args)
	}
	for _, label := range c.labels {
		for _, text := range slices.Concat(validation.IsQualifiedName(label.key), validation.IsValidLabelValue(label.value)) {
			problem("spec.labels: %q: %s", label.key, text)
		}
	}
	for _, annotation := range c.annotations {
		// The API server compares without regard to case.
		for _, text := range validation.IsQualifiedName(strings.ToLower(annotation.key)) {
			problem("spec.annotations: %q: %s", annotation.key, text)
		}
	}
	c.strayMounts = strayMounts(spec)
	c.problem = errors.Join(problems...)
	return c
}

// Problem says why the object can never work, nil if it can.
func (c *Compiled) Problem() error { return c.problem }

// Name is the object's name.
func (c *Compiled) Name() string { return c.name }

// String names the object for people: "PodDefault team-a/proxy".
func (c *Compiled) String() string { return c.title }

// compileList encodes the elements and reports keys that stand there twice,
// unless problem is nil.
func compileList[T any](c *Compiled, kind *listKind, field string, values []T, problem func(string, ...any)) []item {
	if len(values) == 0 {
		return nil
	}
	items := make([]item, 0, len(values))
	for i := range values {
		value := encode(&values[i])
		added := item{key: string(kind.key(value)), value: value, origin: c}
		if slices.ContainsFunc(items, func(other item) bool { return other.key == added.key }) {
			if problem != nil {
				problem("%s: %s %q stands there twice; remove one", field, kind.keyName, added.key)
			}
			continue
		}
		items = append(items, added)
	}
	return items
}

// encode gives the JSON of a part of a PodDefault, without the empty structs that
// encoding/json cannot omit.
func encode(value any) jsontext.Value {
	out, err := json.Marshal(value)
	if err != nil { // values that were decoded from JSON can be encoded
		return jsontext.Value("null")
	}
	// Quotes in JSON strings are escaped, so these match members only.
	for _, empty := range []string{`,"resources":{}`, `,"divisor":"0"`} {
		out = bytes.ReplaceAll(out, []byte(empty), nil)
	}
	return slices.Clip(out)
}

func entries(m map[string]string) []entry {
	if len(m) == 0 {
		return nil
	}
	out := make([]entry, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, entry{key, m[key]})
	}
	return out
}

// strayMounts names the volumes that the object mounts and does not bring along.
// They may come from the pod or from another PodDefault.
func strayMounts(spec *kubeflowv1alpha1.PodDefaultSpec) []string {
	var stray []string
	look := func(mounts []corev1.VolumeMount) {
		for _, mount := range mounts {
			own := slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
			if !own && !slices.Contains(stray, mount.Name) {
				stray = append(stray, mount.Name)
			}
		}
	}
	look(spec.VolumeMounts)
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Sidecars} {
		for i := range list {
			look(list[i].VolumeMounts)
		}
	}
	return stray
}
