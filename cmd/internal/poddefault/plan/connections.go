// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
)

// Data connections are Secrets that an object selects by their labels, in the namespace
// of the pod. A chosen object is replaced by one that names these Secrets, so that
// everything after it, such as merging, conflicts and origins, knows only names. Only
// metadata of Secrets is read.

// MaxConnections limits the Secrets that one selector of an object selects.
const MaxConnections = 100

// connections are the selectors of an object.
type connections struct{ env, volumes labels.Selector } // nil: none

func connectionsOf(spec *kubeflowv1alpha1.PodDefaultSpec) *connections {
	if spec.EnvFromSecretSelector == nil && spec.VolumesFromSecretSelector == nil {
		return nil
	}
	parsed := func(selector *metav1.LabelSelector) labels.Selector {
		if selector == nil {
			return nil
		}
		out, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil { // it is among the problems
			return nil
		}
		return out
	}
	return &connections{parsed(spec.EnvFromSecretSelector), parsed(spec.VolumesFromSecretSelector)}
}

// Connects reports whether the object selects Secrets.
func (h *Head) Connects() bool { return h.connects != nil }

// Connecting returns the revisions of the object that select Secrets: besides the object,
// the stable one of a rollout in progress.
func (c *Plan) Connecting() (revisions []*Plan) {
	if c.Connects() {
		revisions = append(revisions, c)
	}
	if stable, _ := c.RolledOut(); stable != nil && stable.Connects() {
		revisions = append(revisions, stable)
	}
	return revisions
}

// Secrets are the labels of the Secrets of a namespace, by name.
type Secrets map[string]labels.Set

// matching returns the names of the Secrets that a selector selects, sorted.
func (s Secrets) matching(selector labels.Selector) (names []string) {
	if selector == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if selector.Matches(s[name]) {
			names = append(names, name)
		}
	}
	return names
}

// Without returns the object with a problem that it has here.
func (c *Plan) Without(problem error) *Plan {
	out := &Plan{Head: c.Head, Additions: c.onlyMark()}
	out.problem = problem
	return out
}

// WithSecrets returns the object with the Secrets that it selects. They are optional: a
// container also starts if one has been deleted after the pod was created.
func (c *Plan) WithSecrets(all Secrets) *Plan {
	spec := &kubeflowv1alpha1.PodDefaultSpec{}
	if err := json.Unmarshal(c.packed, spec); err != nil { // encoded by this program
		return c.Without(fmt.Errorf("cannot be read: %w", err))
	}
	path := field.NewPath("spec")
	for _, found := range []struct {
		field string
		names []string
		add   func(name string)
	}{
		{"envFromSecretSelector", all.matching(c.connects.env), func(name string) {
			spec.EnvFrom = append(spec.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: new(true),
			}})
		}},
		{"volumesFromSecretSelector", all.matching(c.connects.volumes), func(name string) {
			volume := volumeOfSecret(name)
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: new(true)},
			}})
			spec.VolumeMounts = append(spec.VolumeMounts, corev1.VolumeMount{
				Name: volume, MountPath: strings.TrimSuffix(spec.SecretsMountPath, "/") + "/" + name, ReadOnly: true,
			})
		}},
	} {
		if len(found.names) > MaxConnections {
			return c.Without(field.TooMany(path.Child(found.field), len(found.names), MaxConnections))
		}
		for _, name := range found.names {
			found.add(name)
		}
	}
	out := &Plan{Head: c.Head, packed: meta.EncodedSpec(spec)}
	out.Size = len(out.packed)
	if out.problem = problemOf(append(validate.Limits(spec, out.Size, path), validate.Errors(spec)...)); out.problem != nil {
		return c.Without(out.problem)
	}
	return out.Unpack()
}

// volumeOfSecret returns the name of the volume of a Secret, which must be a DNS label.
func volumeOfSecret(name string) string {
	const prefix = "connection-"
	if volume := prefix + name; len(validation.IsDNS1123Label(volume)) == 0 {
		return volume
	}
	sum := sha256.Sum256([]byte(name))
	return prefix + hex.EncodeToString(sum[:16])
}
