// SPDX-License-Identifier: Apache-2.0

// Package release has what differs between releases of Kubernetes for policies: gates, and defects of their
// evaluation.
package release

import (
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/discovery"
)

// Version is a release of Kubernetes 1. The zero value is unknown.
type Version struct {
	Minor int
	// Patch is -1 if it is unknown.
	Patch int
}

// The releases of which defects and gates are known.
const (
	Oldest = 34
	Newest = 37
)

var format = regexp.MustCompile(`^v?1\.(\d{1,3})(?:\.(\d{1,3}))?\+?(?:[-+].*)?$`)

// Parse reads a version as people and API servers write it: "1.36", "v1.36.3", "v1.35.4-gke.100".
func Parse(text string) (Version, error) {
	m := format.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("%q is not a version of Kubernetes: write it as 1.%d or 1.%d.1", text, Newest, Newest)
	}
	v := Version{Patch: -1}
	v.Minor, _ = strconv.Atoi(m[1])
	if m[2] != "" {
		v.Patch, _ = strconv.Atoi(m[2])
	}
	if v.Minor < Oldest {
		return Version{}, fmt.Errorf("what Kubernetes 1.%d does with policies is not known here: the oldest known release is 1.%d", v.Minor, Oldest)
	}
	return v, nil
}

// Known reports whether the version is known.
func (v Version) Known() bool { return v.Minor > 0 }

// OfServer returns the version of an API server. The error says why it is not known.
func OfServer(server discovery.ServerVersionInterface) (Version, error) {
	info, err := server.ServerVersion()
	if err != nil {
		return Version{}, fmt.Errorf("asking the API server for its version: %w", err)
	}
	return Parse(info.GitVersion)
}

// Set implements pflag.Value.
func (v *Version) Set(text string) (err error) {
	*v, err = Parse(text)
	return err
}

// Type implements pflag.Value.
func (v *Version) Type() string { return "version" }

// Newer reports whether the version is newer than what is known here.
func (v Version) Newer() bool { return v.Minor > Newest }

// String returns the version as in "1.36.3"; "" if it is unknown.
func (v Version) String() string {
	switch {
	case !v.Known():
		return ""
	case v.Patch < 0:
		return fmt.Sprintf("1.%d", v.Minor)
	}
	return fmt.Sprintf("1.%d.%d", v.Minor, v.Patch)
}

// Expressions is the version of CEL's libraries with which the API server compiles new expressions: that of the
// minor before its own, so that it can be rolled back.
func (v Version) Expressions() *version.Version {
	newest := environment.DefaultCompatibilityVersion()
	if !v.Known() || v.Minor > int(newest.Minor()) {
		return newest
	}
	return version.MajorMinor(1, uint(v.Minor-1))
}

// Gate is an ability that an API server has from a release on.
type Gate struct {
	What, Link string
	// Since is the minor in which it is on by default.
	Since int
}

// The gates that rules and evaluations ask for.
const (
	MutatingPolicies = "mutating-policies"
	StaticPolicies   = "static-policies"
	// HiddenReviews means that webhooks do not see who somebody is or what they may do.
	HiddenReviews = "hidden-reviews"
)

// Gates returns the gates by name.
func Gates() map[string]Gate {
	return map[string]Gate{
		MutatingPolicies: {What: "admissionregistration.k8s.io/v1 MutatingAdmissionPolicy", Link: "KEP-3962", Since: 36},
		StaticPolicies:   {What: "admission policies in static manifests", Link: "KEP-5793", Since: 37},
		HiddenReviews:    {What: "the exclusion of authentication and authorization reviews from webhooks", Link: "ExcludeAdmissionWebhookVirtualResources", Since: 37},
	}
}

// Lacks returns the gate if the version is known and does not have it.
func (v Version) Lacks(gate string) (Gate, bool) {
	g := Gates()[gate]
	return g, v.Known() && v.Minor < g.Since
}
