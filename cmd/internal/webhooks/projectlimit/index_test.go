// SPDX-License-Identifier: Apache-2.0

package projectlimit

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/test/cases"
)

func countingWebhook(t testing.TB, source Source, limit int) admission.Webhook {
	t.Helper()
	settings := DefaultSettings()
	settings.Limit = int32(limit)
	webhooks, err := New(source, settings)
	if err != nil {
		t.Fatal(err)
	}
	return webhooks[1]
}

func project(name, requester string) Project {
	return Project{Name: name, UID: types.UID("uid-" + name), Requester: requester}
}

// TestManyAtOnceGetNoMoreThanTheLimit runs 200 concurrent creations by one user, while
// grants are observed at random times in random order.
func TestManyAtOnceGetNoMoreThanTheLimit(t *testing.T) {
	const limit, creations = 3, 200
	index := NewIndex()
	webhook := countingWebhook(t, index, limit)
	var wait sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for i := range creations {
		wait.Go(func() {
			name := "p" + strconv.Itoa(i)
			resp, err := webhook.Handler.Handle(t.Context(), request("alice", name, admissionv1.Create))
			if err != nil {
				t.Error(err)
				return
			}
			if resp.Allowed {
				mu.Lock()
				granted++
				mu.Unlock()
				wait.Go(func() { index.Set(project(name, "alice")) })
			}
		})
	}
	wait.Wait()
	if granted != limit || index.Len() != limit {
		t.Errorf("%d of %d were granted and %d are there, the limit is %d", granted, creations, index.Len(), limit)
	}
}

// TestReplicasOvershootAtMostByTheLimitEach checks the documented bound: replicas that
// observe nothing of each other grant the limit each. Once they do, none grants any
// more.
func TestReplicasOvershootAtMostByTheLimitEach(t *testing.T) {
	const limit, replicas = 3, 3
	var indexes []*Index
	var webhooks []admission.Webhook
	for range replicas {
		indexes = append(indexes, NewIndex())
		webhooks = append(webhooks, countingWebhook(t, indexes[len(indexes)-1], limit))
	}
	var stored []Project
	create := func(i int, see bool) {
		name := "p" + strconv.Itoa(i)
		if !cases.Handle(t, webhooks[i%replicas], request("alice", name, admissionv1.Create)).Allowed {
			return
		}
		stored = append(stored, project(name, "alice"))
		if see {
			for _, index := range indexes {
				index.Set(stored[len(stored)-1])
			}
		}
	}
	create(0, true)
	for i := range 100 {
		create(1+i, false)
	}
	if want := 1 + replicas*(limit-1); len(stored) != want {
		t.Errorf("%d were granted, the bound is %d", len(stored), want)
	}
	for _, index := range indexes {
		for _, p := range stored {
			index.Set(p)
		}
	}
	before := len(stored)
	for i := range 100 {
		create(1000+i, false)
	}
	if len(stored) != before {
		t.Errorf("%d more were granted by replicas that had seen all", len(stored)-before)
	}
	// Sequential claims never overshoot.
	for _, index := range indexes {
		for _, p := range stored {
			index.Delete(p.Name, p.UID)
		}
		index.reserved = map[string]map[string]reservation{}
	}
	stored = nil
	for i := range 100 {
		create(2000+i, true)
	}
	if len(stored) != limit {
		t.Errorf("%d were granted one after the other, the limit is %d", len(stored), limit)
	}
}

func TestReservations(t *testing.T) {
	claim := func(name string) Claim { return Claim{Requester: "alice", Project: name, Limit: 1} }
	for name, test := range map[string]struct {
		between func(*Index, func(time.Duration)) // after a grant for p
		claim   Claim
		granted bool
	}{
		"what was granted counts before it is seen":                    {func(*Index, func(time.Duration)) {}, claim("q"), false},
		"the same claim again is granted again":                        {func(*Index, func(time.Duration)) {}, claim("p"), true},
		"another requester is not concerned":                           {func(*Index, func(time.Duration)) {}, Claim{Requester: "bob", Project: "q", Limit: 1}, true},
		"what was never seen ends":                                     {func(_ *Index, pass func(time.Duration)) { pass(reservationTime) }, claim("q"), true},
		"what was never seen does not end before its time":             {func(_ *Index, pass func(time.Duration)) { pass(reservationTime - 1) }, claim("q"), false},
		"what was seen counts once":                                    {func(x *Index, _ func(time.Duration)) { x.Set(project("p", "alice")) }, Claim{Requester: "alice", Project: "q", Limit: 2}, true},
		"what was seen and deleted does not count":                     {func(x *Index, _ func(time.Duration)) { x.Set(project("p", "alice")); x.Delete("p", "uid-p") }, claim("q"), true},
		"what turned out to be another's does not count":               {func(x *Index, _ func(time.Duration)) { x.Set(project("p", "bob")) }, claim("q"), true},
		"another project keeps the reservation":                        {func(x *Index, _ func(time.Duration)) { x.Set(project("r", "bob")) }, claim("q"), false},
		"it fulfils the reservation and counts":                        {func(x *Index, _ func(time.Duration)) { x.Set(project("p", "alice")) }, claim("q"), false},
		"the deletion of one of that name that was not known fulfills": {func(x *Index, _ func(time.Duration)) { x.Delete("p", "uid-p") }, claim("q"), true},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			x := newIndex(func() time.Time { return now })
			if _, granted, _ := x.Claim(t.Context(), claim("p")); !granted {
				t.Fatal("the first is not granted")
			}
			test.between(x, func(d time.Duration) { now = now.Add(d) })
			if have, granted, _ := x.Claim(t.Context(), test.claim); granted != test.granted {
				t.Errorf("granted: %v, with %d", granted, have)
			}
		})
	}
}

// A project is deleted and requested again. The late deletion event of the first must
// not remove the reservation of the second.
func TestALateDeletionKeepsTheReservationOfTheNext(t *testing.T) {
	x := NewIndex()
	x.Set(project("p", "alice"))
	claim := Claim{Requester: "alice", Project: "p", Limit: 1}
	if _, granted, _ := x.Claim(t.Context(), claim); !granted {
		t.Fatal("the one that replaces it is not granted")
	}
	x.Set(Project{Name: "p", UID: "uid-p", Requester: "alice", Terminating: true})
	x.Delete("p", "uid-p")
	if have, granted, _ := x.Claim(t.Context(), Claim{Requester: "alice", Project: "q", Limit: 1}); granted || have != 1 {
		t.Errorf("another is granted, with %d", have)
	}
}

func TestADryRunClaimsNothing(t *testing.T) {
	x := NewIndex()
	webhook := countingWebhook(t, x, 1)
	dry := request("alice", "p", admissionv1.Create)
	dry.DryRun = new(true)
	if !cases.Handle(t, webhook, dry).Allowed || len(x.reserved) > 0 {
		t.Errorf("a dry run is refused, or reserves: %v", x.reserved)
	}
	if !cases.Handle(t, webhook, request("alice", "q", admissionv1.Create)).Allowed {
		t.Error("a dry run is counted")
	}
	if cases.Handle(t, webhook, dry).Allowed {
		t.Error("a dry run is granted over the limit")
	}
}

func TestReservationsThatEndedAreDropped(t *testing.T) {
	now := time.Unix(0, 0)
	x := newIndex(func() time.Time { return now })
	for i := range 100 {
		if _, granted, _ := x.Claim(t.Context(), Claim{Requester: "user" + strconv.Itoa(i), Project: "p" + strconv.Itoa(i), Limit: 1}); !granted {
			t.Fatal("not granted")
		}
	}
	now = now.Add(reservationTime)
	if _, _, err := x.Claim(t.Context(), Claim{Requester: "alice", Project: "p", Limit: 1}); err != nil || len(x.reserved) != 1 {
		t.Errorf("%d requesters have reservations", len(x.reserved))
	}
}

// After any events in any order, the index counts the same as a plain list of existing
// and reserved projects.
func TestIndexCountsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		x := NewIndex()
		there := map[string]Project{}
		serial := 0
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "name")
			switch rapid.IntRange(0, 3).Draw(r, "step") {
			case 0:
				serial++
				p := Project{Name: name, UID: types.UID(fmt.Sprint(serial)), Requester: rapid.SampledFrom([]string{"", "alice", "bob"}).Draw(r, "requester")}
				there[name] = p
				x.Set(p)
			case 1:
				x.Delete(name, there[name].UID)
				delete(there, name)
			case 2:
				if p, ok := there[name]; ok {
					p.Terminating = true
					there[name] = p
					x.Set(p)
				}
			case 3: // it is seen again as it is
				if p, ok := there[name]; ok {
					x.Set(p)
				}
			}
			for _, requester := range []string{"alice", "bob"} {
				want, wantAll := 0, 0
				for _, p := range there {
					if p.Requester == requester {
						wantAll++
						if !p.Terminating {
							want++
						}
					}
				}
				claim := Claim{Requester: requester, Project: "new", Limit: 100, DryRun: true}
				have, _, _ := x.Claim(t.Context(), claim)
				claim.CountTerminating = true
				haveAll, _, _ := x.Claim(t.Context(), claim)
				if have != want || haveAll != wantAll {
					r.Fatalf("%s has %d and %d, want %d and %d", requester, have, haveAll, want, wantAll)
				}
			}
		}
	})
}
