// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// meet returns a meeting point of calls, whose lists the test releases one by one.
func meet(catchUp func(context.Context) ([]correction, error)) *lists {
	return newLists(func(ctx context.Context, _ string) ([]correction, error) { return catchUp(ctx) })
}

func TestCallsShareTheListThatBeginsAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		release := make(chan struct{})
		s := meet(func(context.Context) ([]correction, error) {
			n := begun.Add(1)
			<-release
			return []correction{{title: fmt.Sprint(n)}}, nil
		})
		var group sync.WaitGroup
		call := func(want string) {
			group.Go(func() {
				l, err := s.wait(t.Context(), "")
				if err != nil || len(l) != 1 || l[0].title != want {
					t.Errorf("got %v, %v; want that of list %s", l, err, want)
				}
			})
		}
		call("1")
		synctest.Wait()
		for range 5 {
			call("2") // the first list has begun before them
		}
		synctest.Wait()
		if n := begun.Load(); n != 1 {
			t.Errorf("%d lists at a time", n)
		}
		release <- struct{}{}
		synctest.Wait()
		release <- struct{}{}
		group.Wait()
		if n := begun.Load(); n != 2 {
			t.Errorf("%d lists for 6 calls, want 2", n)
		}
	})
}

func TestACallThatGoesAwayTakesNoOtherWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := meet(func(ctx context.Context) ([]correction, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(3 * time.Second):
				return nil, nil
			}
		})
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := s.wait(hasty, ""); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the one without time got %v", err)
			}
		})
		synctest.Wait()
		group.Go(func() {
			if _, err := s.wait(t.Context(), ""); err != nil {
				t.Errorf("the other got %v", err)
			}
		})
		group.Wait()
	})
}

func TestAListMayTakeTheWholeCall(t *testing.T) {
	for _, tc := range []struct {
		takes time.Duration
		fails bool
	}{{4800 * time.Millisecond, false}, {4950 * time.Millisecond, true}} {
		synctest.Test(t, func(t *testing.T) {
			w := &Watcher{plans: newPlans(), lists: meet(func(ctx context.Context) ([]correction, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(tc.takes):
					return nil, nil
				}
			})}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := w.refresh(ctx, "team-a")
			if (err != nil) != tc.fails || ctx.Err() != nil {
				t.Errorf("a list that takes %s of 5 s: %v", tc.takes, err)
			}
			synctest.Wait()
		})
	}
}

func TestAListThatFailsFailsForAllThatWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("away")
		s := meet(func(context.Context) ([]correction, error) { return nil, cause })
		for range 3 {
			if _, err := s.wait(t.Context(), ""); !errors.Is(err, cause) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestCorrectionsTakeThePlaceOfWhatTheWatchKnows(t *testing.T) {
	old := podtest.PodDefaults(t, []byte(`
metadata: {name: changed}
spec: {selector: {matchLabels: {use: "old"}}}
---
metadata: {name: gone}
spec: {selector: {}}
---
metadata: {name: same}
spec: {selector: {}}
`))
	fresh := podtest.PodDefaults(t, []byte(`
metadata: {name: changed}
spec: {selector: {matchLabels: {use: "true"}}}
---
metadata: {name: added}
spec: {selector: {}}
`))
	s := correct(indexWith(old...).plans, []correction{
		{title: "PodDefault team-a/changed", object: plan.Compile(fresh[0])},
		{title: "PodDefault team-a/gone"},
		{object: plan.Compile(fresh[1])},
	})
	for use, want := range map[string]string{"true": "added,changed,same", "old": "added,same"} {
		selected, err := s.Select(t.Context(), podtest.Namespace, podmeta.LabelsOf(map[string]string{"use": use}))
		if err != nil || plan.Names(selected) != want {
			t.Errorf("use=%s selects %s (%v), want %s", use, plan.Names(selected), err, want)
		}
	}
}

// indexWith returns an index of PodDefaults.
func indexWith(pds ...*kubeflowv1alpha1.PodDefault) *Index {
	index := NewIndex()
	for _, pd := range pds {
		index.Set(plan.Compile(pd))
	}
	return index
}
