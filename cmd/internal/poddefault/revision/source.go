// SPDX-License-Identifier: Apache-2.0

package revision

// Source knows the stable revisions of objects with spec.rollout.
type Source interface {
	// Stable returns the stable revision, which may be used, or nil if none is known.
	Stable(Owner) *Record
	// Keeps reports whether there are revisions of the objects of a namespace, or of
	// ClusterPodDefaults. Without them there are no rollouts.
	Keeps(namespace string) bool
}

// Set is a [Source] with revisions that were read once. The zero value is empty.
type Set struct{ all map[Owner][]*Record }

// Add adds a revision. One that must not be used is ignored.
func (s *Set) Add(r *Record) {
	if r.Problem != nil {
		return
	}
	if s.all == nil {
		s.all = map[Owner][]*Record{}
	}
	s.all[r.Owner], _ = Of(r.Owner, append(s.all[r.Owner], r))
}

// Stable implements [Source].
func (s *Set) Stable(owner Owner) *Record { return StableAmong(s.all[owner]) }

// Keeps implements [Source].
func (s *Set) Keeps(string) bool { return true }
