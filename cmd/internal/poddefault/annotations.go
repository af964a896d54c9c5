// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// skipMark returns the annotation that says why the object was skipped.
func (c *Compiled) skipMark() string {
	if c.Cluster() {
		return meta.ClusterSkipMark(c.name)
	}
	return meta.SkipMark(c.name)
}

// skipValue returns the value of that annotation.
func (c *Compiled) skipValue(reason string) string {
	return "generation " + strconv.FormatInt(c.generation, 10) + ": " + reason
}

// listedAmong returns the objects that a value of [meta.DecisionsAnnotation] lists.
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

// decisions returns the value of [meta.DecisionsAnnotation]. An existing list stays if it
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
