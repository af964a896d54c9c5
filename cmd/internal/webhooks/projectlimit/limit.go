// SPDX-License-Identifier: Apache-2.0

package projectlimit

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// exempt reports whether a user has no limit and may choose a namespace's requester.
func (s *Settings) exempt(user *authenticationv1.UserInfo) bool {
	return slices.Contains(s.ExemptUsers, user.Username) ||
		slices.ContainsFunc(user.Groups, func(group string) bool { return slices.Contains(s.ExemptGroups, group) })
}

// limit returns how many projects a user may have.
func (s *Settings) limit(user *authenticationv1.UserInfo) int {
	highest := int32(-1)
	for _, l := range s.Limits {
		if l.User != "" && l.User == user.Username {
			return int(l.Limit)
		}
		if l.Group != "" && slices.Contains(user.Groups, l.Group) {
			highest = max(highest, l.Limit)
		}
	}
	if highest >= 0 {
		return int(highest)
	}
	return int(s.Limit)
}
