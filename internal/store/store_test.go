// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// note is the cached part of an object.
type note struct{ identity Identity }

func (n *note) Identity() Identity { return n.identity }

func newNote(name, version string) *note {
	return &note{Identity{types.NamespacedName{Name: name}, types.UID(name), version}}
}

func namedOf(name, version string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version}}
}

// told renders the changes that a handler received: "a@1" is new, "a@1-2" has changed,
// "a@2-" is gone.
type told struct{ calls []string }

func (l *told) handler() Handler[*note] {
	return Handler[*note]{
		Changed: func(changes []Change[*note]) {
			var call []string
			for _, c := range changes {
				switch {
				case c.Before == nil:
					call = append(call, c.Now.identity.Name+"@"+c.Now.identity.ResourceVersion)
				case c.Now == nil:
					call = append(call, c.Before.identity.Name+"@"+c.Before.identity.ResourceVersion+"-")
				default:
					call = append(call, c.Now.identity.Name+"@"+c.Before.identity.ResourceVersion+"-"+c.Now.identity.ResourceVersion)
				}
			}
			slices.Sort(call)
			l.calls = append(l.calls, strings.Join(call, " "))
		},
		Synced: func() { l.calls = append(l.calls, "synced") },
	}
}

func emptyStore() *Store[*note] {
	return New(Kind[*metav1.PartialObjectMetadata, *note]{Name: "notes", Example: &metav1.PartialObjectMetadata{}, From: &cache.ListWatch{}}, slog.New(slog.DiscardHandler))
}

func TestHandlersAreToldWhatChanges(t *testing.T) {
	s := emptyStore()
	var first, second told
	s.Handle(first.handler())
	a := newNote("a", "1")
	s.Replace([]*note{a, newNote("b", "1")})
	s.Set(newNote("b", "2"))
	s.Delete(types.NamespacedName{Name: "nobody"})
	remove := s.Handle(second.handler())
	s.Replace([]*note{a, newNote("c", "3")})
	remove()
	s.Delete(types.NamespacedName{Name: "c"})
	if want := []string{"a@1 b@1", "synced", "b@1-2", "b@2- c@3", "c@3-"}; !slices.Equal(first.calls, want) {
		t.Errorf("the first was told %q, want %q", first.calls, want)
	}
	if want := []string{"a@1 b@2", "synced", "b@2- c@3"}; !slices.Equal(second.calls, want) {
		t.Errorf("the second was told %q, want %q", second.calls, want)
	}
	if s.Get(types.NamespacedName{Name: "a"}) != a || len(s.List()) != 1 {
		t.Errorf("it holds %v", s.List())
	}
}

// TestWhatHasNotChangedIsNotMadeAnew: a second list only costs its differences.
func TestWhatHasNotChangedIsNotMadeAnew(t *testing.T) {
	s := emptyStore()
	made := 0
	w := writer[*metav1.PartialObjectMetadata, *note]{s, func(o *metav1.PartialObjectMetadata) *note {
		made++
		return newNote(o.Name, o.ResourceVersion)
	}}
	for i, version := range []string{"1", "1", "2"} {
		a, b := namedOf("a", "1"), namedOf("b", version)
		if err := w.Replace([]any{&digest[*note]{w.kept(&a)}, &digest[*note]{w.kept(&b)}}, ""); err != nil {
			t.Fatal(err)
		}
		if want := []int{2, 2, 3}[i]; made != want {
			t.Errorf("after %d lists %d were made, want %d", i+1, made, want)
		}
	}
}

// TestSeveralRunsShareOneWatch until the last of them ends.
func TestSeveralRunsShareOneWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists, watches atomic.Int32
		s := New(Kind[*metav1.PartialObjectMetadata, *note]{
			Name: "notes", Example: &metav1.PartialObjectMetadata{},
			Keep: func(o *metav1.PartialObjectMetadata) *note { return newNote(o.Name, o.ResourceVersion) },
			From: &cache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					lists.Add(1)
					return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []metav1.PartialObjectMetadata{namedOf("a", "1")}}, nil
				},
				WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
					watches.Add(1)
					events := watch.NewFake()
					context.AfterFunc(ctx, func() { watches.Add(-1); events.Stop() })
					return events, nil
				},
			},
		}, slog.New(slog.DiscardHandler))
		run := func() (end func()) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); s.Run(ctx) }()
			<-s.Synced()
			synctest.Wait()
			return func() { cancel(); <-done }
		}
		var steps []string
		step := func(what string) {
			synctest.Wait()
			steps = append(steps, fmt.Sprintf("%s: %d lists, %d watches", what, lists.Load(), watches.Load()))
		}
		first := run()
		second := run()
		step("two")
		first()
		step("one")
		second()
		step("none")
		if want := []string{"two: 1 lists, 1 watches", "one: 1 lists, 1 watches", "none: 1 lists, 0 watches"}; !slices.Equal(steps, want) {
			t.Errorf("got %q", steps)
		}
		if len(s.List()) != 1 {
			t.Error("what was known is forgotten")
		}
	})
}

func TestOfANamespaceIsKeptWhatSomebodyReads(t *testing.T) {
	f := &Factory{annotations: []string{"requester"}}
	from := namedOf("team-a", "7")
	from.Labels, from.Annotations = map[string]string{"team": "a"}, map[string]string{"requester": "alice", "other": "x"}
	from.DeletionTimestamp = &metav1.Time{}
	n := f.keepNamespace(&from)
	if n.Identity().Name != "team-a" || n.Labels["team"] != "a" || len(n.Annotations) != 1 || n.Annotations["requester"] != "alice" || !n.Terminating {
		t.Errorf("%+v", n)
	}
	bare := namedOf("team-b", "7")
	if n := f.keepNamespace(&bare); n.Labels == nil || n.Terminating {
		t.Errorf("%+v", n)
	}
}

func TestAnUpdateTellsHandlersOfWhatDiffers(t *testing.T) {
	s := &Store[*Namespace]{synced: make(chan struct{}), objects: map[types.NamespacedName]*Namespace{}}
	var told []Change[*Namespace]
	s.Handle(Handler[*Namespace]{Changed: func(changes []Change[*Namespace]) { told = append(told, changes...) }})
	name := types.NamespacedName{Name: "team-a"}
	next := &Namespace{Name: "team-a", ResourceVersion: "2"}
	s.Update(name, func(*Namespace) *Namespace { t.Error("there is nothing to update"); return next })
	first := &Namespace{Name: "team-a", ResourceVersion: "1"}
	s.Set(first)
	s.Update(name, func(n *Namespace) *Namespace { return n })
	s.Update(name, func(*Namespace) *Namespace { return next })
	if len(told) != 2 || told[1] != (Change[*Namespace]{Before: first, Now: next}) || s.Get(name) != next {
		t.Errorf("told %+v", told)
	}
}
