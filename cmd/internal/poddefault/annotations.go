// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// Annotations of pods.
const (
	// ExcludeAnnotation with the value "true" excludes a pod from injection.
	ExcludeAnnotation = "poddefault.admission.kubeflow.org/exclude"
	// MirrorAnnotation marks mirror pods, whatever its value. The kubelet creates them
	// from files; they are never changed.
	MirrorAnnotation = "kubernetes.io/config.mirror"
	// MarkPrefix and a PodDefault's name form the annotation of an applied PodDefault.
	// Its value is the PodDefault's resourceVersion, as in Kubeflow's webhook. See [Mark], and
	// [RevisionsAnnotation] for the revision that the pod got.
	MarkPrefix = "poddefault.admission.kubeflow.org/poddefault-"
	// ClusterMarkPrefix is [MarkPrefix] for ClusterPodDefaults. See [ClusterMark].
	ClusterMarkPrefix = "sallyport.io/clusterpoddefault-"
	// SkipPrefix and ClusterSkipPrefix, with the object's name, form the annotation
	// that says why an object was skipped: "generation N: " and a reason. While the pod
	// has it, that generation of the object is skipped again.
	SkipPrefix        = "poddefault.admission.kubeflow.org/skipped-"
	ClusterSkipPrefix = "sallyport.io/clusterpoddefault-skipped-"
	// DecisionsAnnotation lists all objects considered for the pod, applied or not:
	// names of PodDefaults and "cluster/NAME" for ClusterPodDefaults, sorted and
	// separated by commas.
	DecisionsAnnotation = "sallyport.io/poddefaults"
)

// ClusterDecision is the prefix of a ClusterPodDefault in [DecisionsAnnotation].
const ClusterDecision = "cluster/"

// Mark returns the annotation that marks a pod as changed by the named PodDefault.
// Names of more than 52 characters are cut to 43 and get the first 8 hex digits of
// their SHA-256.
func Mark(name string) string { return annotation(MarkPrefix, name) }

// ClusterMark is [Mark] for a ClusterPodDefault. It cuts names of more than 45
// characters.
func ClusterMark(name string) string { return annotation(ClusterMarkPrefix, name) }

// annotation joins a prefix and a name. The prefix ends inside the name part of an
// annotation key, which has at most 63 characters.
func annotation(prefix, name string) string {
	longest := 63 - (len(prefix) - 1 - strings.IndexByte(prefix, '/'))
	return prefix + revision.Shortened(name, longest)
}

// SkipMark returns the annotation that says why the named PodDefault was skipped.
func SkipMark(name string) string { return annotation(SkipPrefix, name) }

// ClusterSkipMark is [SkipMark] for a ClusterPodDefault.
func ClusterSkipMark(name string) string { return annotation(ClusterSkipPrefix, name) }

// skipMark returns the annotation that says why the object was skipped.
func (c *Compiled) skipMark() string {
	if c.Cluster() {
		return ClusterSkipMark(c.name)
	}
	return SkipMark(c.name)
}

// skipValue returns the value of that annotation.
func (c *Compiled) skipValue(reason string) string {
	return "generation " + strconv.FormatInt(c.generation, 10) + ": " + reason
}

// listedAmong returns the objects that a value of [DecisionsAnnotation] lists.
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

// decisions returns the value of [DecisionsAnnotation]. An existing list stays if it
// covers every considered object: labels that objects add may change which objects
// select the pod.
func decisions(listed string, objects ...[]*Compiled) string {
	size := 0
	for _, group := range objects {
		size += len(group)
	}
	names := make([]string, 0, size)
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
