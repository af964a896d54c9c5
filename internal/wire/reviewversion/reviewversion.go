// SPDX-License-Identifier: Apache-2.0

// Package reviewversion has the versions of AdmissionReview and ConversionReview that Sallyport
// reads, answers and registers. Nothing else lists them: a new version is added here.
package reviewversion

import (
	"slices"
	"strings"
)

// The versions, which have the same fields. The API server checks the UID and kind of answers in
// v1 only.
const (
	V1      = "v1"
	V1beta1 = "v1beta1"
)

// all is in order of preference.
var all = []string{V1, V1beta1}

// All returns the versions in order of preference. The caller may keep and change the list.
func All() []string { return slices.Clone(all) }

// Known reports whether a version is supported.
func Known(version string) bool { return slices.Contains(all, version) }

// In reports whether an apiVersion is a supported version of a group.
func In(group, apiVersion string) bool {
	version, ok := strings.CutPrefix(apiVersion, group)
	return ok && strings.HasPrefix(version, "/") && Known(version[1:])
}

// Choices returns the versions as a message lists them: "v1 or v1beta1", each with its group in
// front unless that is "".
func Choices(group string) string {
	list := All()
	for i := range list {
		if group != "" {
			list[i] = group + "/" + list[i]
		}
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// Best returns the supported version that is preferred among those of a webhook. If it has none
// of them, that is the least preferred.
func Best(offered []string) string {
	for _, version := range all {
		if slices.Contains(offered, version) {
			return version
		}
	}
	return all[len(all)-1]
}

// Validate reports, in their order, the versions that are not supported or repeated.
func Validate(versions []string, report func(format string, args ...any)) {
	for i, version := range versions {
		switch {
		case !Known(version):
			report("%q is not supported; choose %s", version, Choices(""))
		case slices.Contains(versions[:i], version):
			report("duplicate %q", version)
		}
	}
}
