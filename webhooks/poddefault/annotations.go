// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Annotations of pods, and what they mean.
const (
	// ExcludeAnnotation keeps a pod as it is if its value is "true".
	ExcludeAnnotation = "poddefault.admission.kubeflow.org/exclude"
	// MirrorAnnotation marks mirror pods, whatever its value. The kubelet made
	// them from files; they stay as they are.
	MirrorAnnotation = "kubernetes.io/config.mirror"
	// MarkPrefix and a PodDefault's name make the annotation that says that it
	// was applied; its value is the PodDefault's resourceVersion. See [Mark].
	MarkPrefix = "poddefault.admission.kubeflow.org/poddefault-"
	// DecisionsAnnotation lists every PodDefault that was decided on, as JSON:
	// {"applied":["a"],"invalid":["b"]}, names in order, empty lists left out.
	DecisionsAnnotation = "sallyport.io/poddefaults"
)

// longestName is how long a PodDefault's name may be for its mark to be a legal
// annotation: the part behind the slash has at most 63 characters.
const longestName = 63 - len("poddefault-")

// Mark is the annotation that marks a pod as changed by the PodDefault of that
// name. A name of more than 52 characters is cut to 43 and told apart by the first
// 8 hex digits of its SHA-256.
func Mark(name string) string {
	if len(name) <= longestName {
		return MarkPrefix + name
	}
	sum := sha256.Sum256([]byte(name))
	return MarkPrefix + name[:43] + "-" + hex.EncodeToString(sum[:4])
}

// decisions is the value of [DecisionsAnnotation].
func decisions(applied, invalid []*Compiled) string {
	out := append(make([]byte, 0, 128), '{')
	for _, group := range []struct {
		name    string
		objects []*Compiled
	}{{"applied", applied}, {"invalid", invalid}} {
		if len(group.objects) == 0 {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, group.name...)
		out = append(out, `":[`...)
		for i, c := range group.objects {
			if i > 0 {
				out = append(out, ',')
			}
			out = jsonpatch.AppendString(out, c.name)
		}
		out = append(out, ']')
	}
	return string(append(out, '}'))
}
