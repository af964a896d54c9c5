// SPDX-License-Identifier: Apache-2.0

package projectlimit

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// reservationTime is how long a project that was admitted counts although nobody has
// seen it: long enough for the API server to store it and the watch to tell, short
// enough for one that was refused by somebody else afterwards.
const reservationTime = 30 * time.Second

// Project is a namespace, as far as it counts.
type Project struct {
	Name        string
	UID         types.UID
	Requester   string // empty if it is nobody's
	Terminating bool
}

// Claim is somebody's wish for one more project.
type Claim struct {
	Requester, Project string
	Limit              int
	// CountTerminating is as in [Settings].
	CountTerminating bool
	// DryRun claims nothing: it only asks.
	DryRun bool
}

// Source knows the projects there are, and those that were just admitted. Claim
// tells how many the requester has without this one, and whether it may have it; if
// so, it counts from now on. The same claim again is the same project. An error is a
// fault of the webhook. Wrap it with [admission.Unavailable] if another try may
// succeed.
type Source interface {
	Claim(ctx context.Context, claim Claim) (have int, granted bool, err error)
}

// Index holds the projects of each requester, and the reservations: what was granted
// and not seen yet. Claims are decided one after the other, so that no number of them
// at once gets more than the limit. It is safe for concurrent use and answers
// [Source].
//
// Each replica has an index of its own. Replicas that have not seen each other's
// grants yet may each grant up to the limit: n replicas together at most n times the
// limit, less what all of them have seen.
type Index struct {
	now func() time.Time

	mu       sync.Mutex
	projects map[string]Project                // by name
	owned    map[string]map[string]bool        // names by requester
	reserved map[string]map[string]reservation // by requester and name
	swept    time.Time
}

// reservation is a grant for a project that was not seen yet.
type reservation struct {
	// before is the UID of the namespace of that name that was there then, and had to
	// go first; empty if there was none.
	before types.UID
	ends   time.Time
}

// NewIndex is an empty index.
func NewIndex() *Index { return newIndex(time.Now) }

func newIndex(now func() time.Time) *Index {
	return &Index{
		now: now, projects: map[string]Project{}, owned: map[string]map[string]bool{}, reserved: map[string]map[string]reservation{},
	}
}

// Claim implements [Source].
func (x *Index) Claim(_ context.Context, claim Claim) (have int, granted bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	x.sweep(now)
	for name := range x.owned[claim.Requester] {
		if name != claim.Project && (claim.CountTerminating || !x.projects[name].Terminating) {
			have++
		}
	}
	for name, r := range x.reserved[claim.Requester] {
		if name != claim.Project && now.Before(r.ends) && !x.counted(name, claim) {
			have++
		}
	}
	if have >= claim.Limit {
		return have, false, nil
	}
	if !claim.DryRun {
		if x.reserved[claim.Requester] == nil {
			x.reserved[claim.Requester] = map[string]reservation{}
		}
		x.reserved[claim.Requester][claim.Project] = reservation{before: x.projects[claim.Project].UID, ends: now.Add(reservationTime)}
	}
	return have, true, nil
}

// counted tells whether a reserved project counts already as one that is there: the
// one of that name which has to go first.
func (x *Index) counted(name string, claim Claim) bool {
	return x.owned[claim.Requester][name] && (claim.CountTerminating || !x.projects[name].Terminating)
}

// sweep drops what has ended, now and then.
func (x *Index) sweep(now time.Time) {
	if now.Sub(x.swept) < reservationTime {
		return
	}
	x.swept = now
	for requester, list := range x.reserved {
		for name, r := range list {
			if !now.Before(r.ends) {
				x.release(requester, name)
			}
		}
	}
}

func (x *Index) release(requester, name string) {
	delete(x.reserved[requester], name)
	if len(x.reserved[requester]) == 0 {
		delete(x.reserved, requester)
	}
}

// Set adds a project, or replaces the one of that name. It fulfils reservations of
// that name.
func (x *Index) Set(p Project) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen(p.Name, p.UID)
	x.forget(p.Name)
	x.projects[p.Name] = p
	if p.Requester == "" {
		return
	}
	if x.owned[p.Requester] == nil {
		x.owned[p.Requester] = map[string]bool{}
	}
	x.owned[p.Requester][p.Name] = true
}

// Delete removes a project, if it is there. A reservation that was made while it was
// there stays: it is for the next one of that name.
func (x *Index) Delete(name string, uid types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen(name, uid)
	x.forget(name)
}

// seen ends the reservations that the namespace with this UID has fulfilled, or has
// made impossible because it is another's.
func (x *Index) seen(name string, uid types.UID) {
	for requester, list := range x.reserved {
		if r, ok := list[name]; ok && r.before != uid {
			x.release(requester, name)
		}
	}
}

func (x *Index) forget(name string) {
	requester := x.projects[name].Requester
	delete(x.projects, name)
	delete(x.owned[requester], name)
	if len(x.owned[requester]) == 0 {
		delete(x.owned, requester)
	}
}

// Len is the number of projects that are somebody's.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, names := range x.owned {
		n += len(names)
	}
	return n
}
