// SPDX-License-Identifier: Apache-2.0

// Package meta has what the stages of PodDefault have in common: annotations of pods, placeholders in
// texts, and how a spec is encoded. It decides nothing.
package meta

import (
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
	// GoneAnnotation lists objects that selected the pod until recently but were deleted or
	// now select other pods, each as NAME#VERSION with the name as in [DecisionsAnnotation],
	// sorted and separated by commas. It tells a reader with an outdated index that nothing
	// is missing from the pod.
	GoneAnnotation = "sallyport.io/poddefaults-gone"
	// LimitRangerAnnotation is that of the API server's LimitRanger plugin, which says what it has set.
	LimitRangerAnnotation = "kubernetes.io/limit-ranger"
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

// SkipMarkFor returns the annotation that says why an object was skipped, by its name in [DecisionsAnnotation].
func SkipMarkFor(decision string) string {
	if cluster, ok := strings.CutPrefix(decision, ClusterDecision); ok {
		return annotation(ClusterSkipPrefix, cluster)
	}
	return annotation(SkipPrefix, decision)
}
