// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/sallyport-io/sallyport/examples/bookstore/api/v1"
)

// uniqueCondition is false for a Book whose ISBN an older Book has.
const uniqueCondition = "Unique"

type reconciler struct{ client client.Client }

// setUpController watches Books; a change to one concerns all Books with its ISBN.
func setUpController(m manager.Manager) error {
	r := &reconciler{m.GetClient()}
	return builder.ControllerManagedBy(m).Named("book").
		Watches(&v1.Book{}, handler.EnqueueRequestsFromMapFunc(r.sameISBN)).
		// The replicas of a test run in one process, in which a name is otherwise unique.
		WithOptions(controller.Options{SkipNameValidation: new(true)}).
		Complete(reconcile.AsReconciler(m.GetClient(), r))
}

func (r *reconciler) sameISBN(ctx context.Context, book client.Object) []reconcile.Request {
	requests := []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(book)}}
	var same v1.BookList
	if err := r.client.List(ctx, &same, client.MatchingFields{isbnIndex: book.(*v1.Book).Spec.ISBN}); err != nil {
		return requests // Reconcile reports the error
	}
	for _, other := range same.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&other)})
	}
	return requests
}

// Reconcile writes the status of a Book.
func (r *reconciler) Reconcile(ctx context.Context, book *v1.Book) (reconcile.Result, error) {
	other, err := oldestOther(ctx, r.client, book)
	if err != nil {
		return reconcile.Result{}, err
	}
	unique := metav1.Condition{Type: uniqueCondition, Status: metav1.ConditionTrue, Reason: "Oldest", ObservedGeneration: book.Generation}
	if other != nil && older(other, book) {
		unique.Status, unique.Reason = metav1.ConditionFalse, "Duplicate"
		unique.Message = "Book " + client.ObjectKeyFromObject(other).String() + " is older and has the same ISBN"
	}
	copies := ptr.Deref(book.Spec.Copies, 0)
	if !meta.SetStatusCondition(&book.Status.Conditions, unique) && book.Status.Copies == copies {
		return reconcile.Result{}, nil
	}
	book.Status.Copies = copies
	return reconcile.Result{}, r.client.Status().Update(ctx, book)
}
