// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/sallyport-io/sallyport/examples/bookstore/api/v1"
	"github.com/sallyport-io/sallyport/examples/bookstore/api/v1alpha1"
	"github.com/sallyport-io/sallyport/examples/bookstore/api/v1beta1"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// Two replicas default, validate, convert and scale Books, and report the duplicates that were
// created at once.
func TestBookstoreOnARealAPIServer(t *testing.T) {
	cluster := sallyporttest.Start(t, application(t), sallyporttest.WithReplicas(2))
	c, ctx := cluster.Client, t.Context()

	created := book("ulysses", v1.BookSpec{Title: "Ulysses", ISBN: "978-0-14-118280-3", Authors: []string{"James Joyce", "Declan Kiberd"}, Price: &v1.Price{Cents: 1250}})
	if err := c.Create(ctx, created); err != nil {
		t.Fatal(err)
	}
	if created.Spec.ISBN != ulysses || created.Spec.Price.Currency != "EUR" || *created.Spec.Copies != 1 {
		t.Errorf("the defaults are not set: %+v", created.Spec)
	}
	if err := c.Create(ctx, book("invalid", v1.BookSpec{Title: "Emma", ISBN: "1"})); !apierrors.IsInvalid(err) {
		t.Errorf("an invalid ISBN: %v", err)
	}
	eventually(t, "both replicas know the ISBN", func(ctx context.Context) error {
		for range 4 { // replicas answer in turn
			if err := c.Create(ctx, book("again", v1.BookSpec{Title: "Ulysses", ISBN: ulysses}), client.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("a second Book with the ISBN: %w", err)
			}
		}
		return nil
	})
	if err := c.Create(ctx, book("ulysses", created.Spec)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the same Book again: %v", err)
	}

	// An edit in versions that do not have all fields loses none.
	eventually(t, "the Book is edited as v1alpha1 and as v1beta1", func(ctx context.Context) error {
		var alpha v1alpha1.Book
		if err := c.Get(ctx, client.ObjectKeyFromObject(created), &alpha); err != nil {
			return err
		}
		alpha.Spec.Title = "Ulysses (1922)"
		if err := c.Update(ctx, &alpha); err != nil {
			return err
		}
		var beta v1beta1.Book
		if err := c.Get(ctx, client.ObjectKeyFromObject(created), &beta); err != nil {
			return err
		}
		beta.Spec.PriceCents = new(int64(900))
		return c.Update(ctx, &beta)
	})
	var edited v1.Book
	if err := c.Get(ctx, client.ObjectKeyFromObject(created), &edited); err != nil {
		t.Fatal(err)
	}
	if spec := edited.Spec; spec.Title != "Ulysses (1922)" || !slices.Equal(spec.Authors, created.Spec.Authors) || *spec.Price != (v1.Price{Cents: 900, Currency: "EUR"}) || *spec.Copies != 1 || len(edited.Annotations) > 0 {
		t.Errorf("after the edits: %+v, annotations %v", spec, edited.Annotations)
	}

	scale := func(replicas int32) error {
		return c.SubResource("scale").Update(ctx, created, client.WithSubResourceBody(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}))
	}
	if err := scale(1001); !apierrors.IsInvalid(err) {
		t.Errorf("scaled to 1001: %v", err)
	}
	if err := scale(7); err != nil {
		t.Errorf("scaled to 7: %v", err)
	}
	eventually(t, "the status has the copies, and the Book is unique", func(ctx context.Context) error {
		var scaled v1.Book
		if err := c.Get(ctx, client.ObjectKeyFromObject(created), &scaled); err != nil {
			return err
		}
		if *scaled.Spec.Copies != 7 || scaled.Status.Copies != 7 || !meta.IsStatusConditionTrue(scaled.Status.Conditions, uniqueCondition) {
			return fmt.Errorf("the Book is %+v, %+v", scaled.Spec, scaled.Status)
		}
		return nil
	})
	duplicates(t, c)
}

// duplicates creates Books with one ISBN at once, until webhooks have admitted several. All but
// the oldest are reported; when it is deleted, the next one is unique.
func duplicates(t *testing.T, c client.Client) {
	t.Helper()
	var admitted []*v1.Book
	eventually(t, "several Books with one ISBN are admitted", func(ctx context.Context) error {
		for _, made := range admitted { // by an attempt that was too slow
			if err := c.Delete(ctx, made); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		admitted = nil
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				made := book(fmt.Sprintf("emma-%d", i), v1.BookSpec{Title: "Emma", ISBN: emma})
				if c.Create(ctx, made) == nil {
					mu.Lock()
					defer mu.Unlock()
					admitted = append(admitted, made)
				}
			})
		}
		group.Wait()
		if len(admitted) < 2 {
			return errors.New("one Book is admitted at most")
		}
		return nil
	})
	for len(admitted) > 0 {
		slices.SortFunc(admitted, func(a, b *v1.Book) int {
			if older(a, b) {
				return -1
			}
			return 1
		})
		eventually(t, fmt.Sprintf("the oldest of %d is unique", len(admitted)), func(ctx context.Context) error {
			for i, made := range admitted {
				var now v1.Book
				if err := c.Get(ctx, client.ObjectKeyFromObject(made), &now); err != nil {
					return err
				}
				unique := meta.FindStatusCondition(now.Status.Conditions, uniqueCondition)
				if unique == nil || (unique.Status == "True") != (i == 0) {
					return fmt.Errorf("Book %d of %d: %+v", i+1, len(admitted), unique)
				}
			}
			return nil
		})
		if err := c.Delete(t.Context(), admitted[0]); err != nil {
			t.Fatal(err)
		}
		admitted = admitted[1:]
	}
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waited in vain until %s: %v", what, errors.Join(err, last))
	}
}
