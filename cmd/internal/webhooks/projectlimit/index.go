// SPDX-License-Identifier: Apache-2.0

package projectlimit

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// reservationTime is how long an admitted project counts before it is observed: long
// enough for the API server to store it and the watch to deliver it, short enough if
// another webhook refuses it afterwards.
const reservationTime = 30 * time.Second

// Project is the relevant part of a namespace.
type Project struct {
	Name        string
	UID         types.UID
	Requester   string // empty if it has none
	Terminating bool
}

// Claim is a request for one more project.
type Claim struct {
	Requester, Project string
	Limit              int
	// CountTerminating is as in [Settings].
	CountTerminating bool
	// DryRun makes no reservation.
	DryRun bool
}

// Source counts existing projects and recently admitted ones. Claim returns how many
// the requester has without this one, and whether it may have it. If so, it counts from
// now on. Repeating a claim does not count twice. An error is a fault of the webhook.
// Wrap it with [admission.Unavailable] if a retry may succeed.
type Source interface {
	Claim(ctx context.Context, claim Claim) (have int, granted bool, err error)
}

// Index holds the projects of each requester, and reservations for granted projects
// that have not been observed. Claims are serialized, so concurrent ones cannot exceed
// the limit. It is safe for concurrent use and implements [Source].
//
// Each replica has its own index. Replicas that have not observed each other's grants
// may each grant up to the limit: n replicas together at most n times the limit, less
// what all of them have observed.
type Index struct {
	now func() time.Time

	mu       sync.Mutex
	projects map[string]Project                // by name
	owned    map[string]map[string]bool        // names by requester
	reserved map[string]map[string]reservation // by requester and name
	swept    time.Time
}

// reservation is a grant for a project that has not been observed.
type reservation struct {
	// before is the UID of the existing namespace of that name, which must be deleted
	// first, or "".
	before types.UID
	ends   time.Time
}

// NewIndex returns an empty index.
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

// counted reports whether a reserved project is already counted as an existing one: the
// namespace of that name that must be deleted first.
func (x *Index) counted(name string, claim Claim) bool {
	return x.owned[claim.Requester][name] && (claim.CountTerminating || !x.projects[name].Terminating)
}

// sweep occasionally drops expired reservations.
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

// Set adds or replaces a project. It fulfils reservations of that name.
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

// Delete removes a project, if it exists. A reservation made while it existed stays: it
// is for its successor.
func (x *Index) Delete(name string, uid types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen(name, uid)
	x.forget(name)
}

// seen ends the reservations that the namespace with this UID fulfils, or makes
// impossible because another requester has it.
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

// Len returns the number of projects with a requester.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, names := range x.owned {
		n += len(names)
	}
	return n
}
