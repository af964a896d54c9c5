// SPDX-License-Identifier: Apache-2.0

package projectlimit

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Settings configure how many projects a requester may have.
type Settings struct {
	// limit applies to requesters without an entry in Limits. Default 10; 0 allows none.
	Limit int32 `json:"limit"`
	// limits are limits for users and groups. The limit of the user takes precedence over
	// those of groups; of several groups, the highest applies.
	Limits []Limit `json:"limits,omitempty"`
	// exemptUsers may have any number of projects, are not stamped, and may set and change
	// the requester of a namespace. They and exemptGroups must include everything that
	// creates namespaces on behalf of users. Default system:apiserver.
	ExemptUsers []string `json:"exemptUsers"`
	// exemptGroups are groups whose users are exempt like exemptUsers. Default
	// system:masters, and those of the service accounts of kube-system and
	// openshift-apiserver.
	ExemptGroups []string `json:"exemptGroups"`
	// countTerminating also counts namespaces that are being deleted. They are empty or
	// soon will be, but deletion can be delayed for long.
	CountTerminating bool `json:"countTerminating,omitempty"`
}

// Limit is the limit of a user or a group.
type Limit struct {
	// user is the user with this limit. It or group is required.
	User string `json:"user,omitempty"`
	// group is the group each of whose users has this limit.
	Group string `json:"group,omitempty"`
	// limit is how many projects are allowed. 0 allows none.
	Limit int32 `json:"limit"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{
		Limit:        10,
		ExemptUsers:  []string{"system:apiserver"},
		ExemptGroups: []string{"system:masters", "system:serviceaccounts:kube-system", "system:serviceaccounts:openshift-apiserver"},
	}
}

// Validate reports all problems, by the names of the fields in a file.
func (s Settings) Validate() error {
	var errs field.ErrorList
	if s.Limit < 0 {
		errs = append(errs, field.Invalid(field.NewPath("limit"), s.Limit, "it must not be negative; exemptGroups are for those without a limit"))
	}
	for i, l := range s.Limits {
		at := field.NewPath("limits").Index(i)
		if (l.User == "") == (l.Group == "") {
			errs = append(errs, field.Required(at, "it is for a user or a group: name one of them"))
		}
		if l.Limit < 0 {
			errs = append(errs, field.Invalid(at.Child("limit"), l.Limit, "it must not be negative; exemptGroups are for those without a limit"))
		}
		if slices.ContainsFunc(s.Limits[:i], func(other Limit) bool { return other.User == l.User && other.Group == l.Group }) {
			errs = append(errs, field.Invalid(at, l.User+l.Group, "has a limit already"))
		}
		if l.User != "" && slices.Contains(s.ExemptUsers, l.User) || l.Group != "" && slices.Contains(s.ExemptGroups, l.Group) {
			errs = append(errs, field.Invalid(at, l.User+l.Group, "is exempt, and has no limit"))
		}
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"exemptUsers", s.ExemptUsers}, {"exemptGroups", s.ExemptGroups}} {
		for i, name := range list.names {
			if name == "" {
				errs = append(errs, field.Required(field.NewPath(list.field).Index(i), "it is empty"))
			}
			if slices.Contains(list.names[:i], name) {
				errs = append(errs, field.Duplicate(field.NewPath(list.field).Index(i), name))
			}
		}
	}
	return errs.ToAggregate()
}
