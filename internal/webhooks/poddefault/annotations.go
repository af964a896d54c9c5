// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
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
	// ClusterMarkPrefix is [MarkPrefix] for ClusterPodDefaults. See [ClusterMark].
	ClusterMarkPrefix = "sallyport.io/clusterpoddefault-"
	// SkipPrefix and ClusterSkipPrefix, with the object's name, make the annotation
	// that says why an object was skipped, behind "generation N: ". As long as the
	// pod has it, the object in that generation is skipped again.
	SkipPrefix        = "poddefault.admission.kubeflow.org/skipped-"
	ClusterSkipPrefix = "sallyport.io/clusterpoddefault-skipped-"
	// DecisionsAnnotation lists every object that was decided on, whether it was
	// applied or not: the names of PodDefaults, and "cluster/NAME" for each
	// ClusterPodDefault, sorted, with commas between them.
	DecisionsAnnotation = "sallyport.io/poddefaults"
)

// clusterDecision begins the entry of a ClusterPodDefault in [DecisionsAnnotation].
const clusterDecision = "cluster/"

// Mark is the annotation that marks a pod as changed by the PodDefault of that
// name. A name of more than 52 characters is cut to 43 and told apart by the first
// 8 hex digits of its SHA-256.
func Mark(name string) string { return annotation(MarkPrefix, name) }

// ClusterMark is [Mark] for a ClusterPodDefault, whose name is cut if it has more than
// 45 characters.
func ClusterMark(name string) string { return annotation(ClusterMarkPrefix, name) }

// annotation puts a name behind a prefix that ends in the name part of an annotation's
// key: that part has at most 63 characters.
func annotation(prefix, name string) string {
	longest := 63 - (len(prefix) - 1 - strings.IndexByte(prefix, '/'))
	if len(name) <= longest {
		return prefix + name
	}
	sum := sha256.Sum256([]byte(name))
	return prefix + name[:longest-9] + "-" + hex.EncodeToString(sum[:4])
}

// SkipMark is the annotation that says why the PodDefault of that name was skipped.
func SkipMark(name string) string { return annotation(SkipPrefix, name) }

// ClusterSkipMark is [SkipMark] for a ClusterPodDefault.
func ClusterSkipMark(name string) string { return annotation(ClusterSkipPrefix, name) }

// skipMark is the annotation that says why an object was skipped.
func (c *Compiled) skipMark() string {
	if c.Cluster() {
		return ClusterSkipMark(c.name)
	}
	return SkipMark(c.name)
}

// skipValue is the value of that annotation.
func (c *Compiled) skipValue(reason string) string {
	return "generation " + strconv.FormatInt(c.generation, 10) + ": " + reason
}

// listedAmong are those of the objects that the value of [DecisionsAnnotation] lists.
func listedAmong(listed string, objects ...[]*Compiled) map[string]bool {
	if listed == "" {
		return nil
	}
	among := map[string]bool{}
	for _, group := range objects {
		for _, c := range group {
			among[c.decision] = false
		}
	}
	for name := range strings.SplitSeq(listed, ",") {
		if _, ok := among[name]; ok {
			among[name] = true
		}
	}
	return among
}

// decisions is the value of [DecisionsAnnotation]. What is listed already stays, as
// long as all that was decided on is among it: which objects select a pod may change
// with the labels that they add to it.
func decisions(listed string, objects ...[]*Compiled) string {
	var names []string
	for _, group := range objects {
		for _, c := range group {
			names = append(names, c.decision)
		}
	}
	if listed != "" {
		known := listedAmong(listed, objects...)
		if !slices.ContainsFunc(names, func(name string) bool { return !known[name] }) {
			return listed
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}
