// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport"
	v1 "github.com/sallyport-io/sallyport/examples/bookstore/api/v1"
)

// setDefaults fills in what the author left out, and removes hyphens and spaces from the ISBN.
func setDefaults(_ context.Context, book *v1.Book) error {
	book.Spec.ISBN = strings.NewReplacer("-", "", " ", "").Replace(book.Spec.ISBN)
	if book.Spec.Copies == nil {
		book.Spec.Copies = new(int32(1))
	}
	if price := book.Spec.Price; price != nil && price.Currency == "" {
		price.Currency = "EUR"
	}
	return nil
}

// validate reports all problems, each with its field.
func validate(_ context.Context, book *v1.Book) error {
	spec, errs := field.NewPath("spec"), field.ErrorList{}
	if book.Spec.Title == "" {
		errs = append(errs, field.Required(spec.Child("title"), "name the book"))
	}
	if !isISBN(book.Spec.ISBN) {
		errs = append(errs, field.Invalid(spec.Child("isbn"), book.Spec.ISBN, "must have 13 digits, the last of which is the check digit"))
	}
	if price := book.Spec.Price; price != nil && price.Cents < 0 {
		errs = append(errs, field.Invalid(spec.Child("price", "cents"), price.Cents, "must not be negative"))
	}
	if copies := book.Spec.Copies; copies != nil {
		errs = append(errs, checkCopies(spec.Child("copies"), *copies)...)
	}
	return errs.ToAggregate()
}

// validateCreate also denies an ISBN that another Book has. Of two Books that are created at
// once, both may pass: the controller marks the younger one.
func validateCreate(ctx context.Context, book *v1.Book) error {
	if err := validate(ctx, book); err != nil {
		return err
	}
	other, err := oldestOther(ctx, sallyport.Cache(ctx), book)
	if err != nil || other == nil {
		return err
	}
	return field.Invalid(field.NewPath("spec", "isbn"), book.Spec.ISBN,
		"Book "+client.ObjectKeyFromObject(other).String()+" has this ISBN: use another one, or delete that Book")
}

// validateUpdate also keeps the ISBN as it is.
func validateUpdate(ctx context.Context, old, book *v1.Book) error {
	if old.Spec.ISBN != book.Spec.ISBN {
		return field.Forbidden(field.NewPath("spec", "isbn"), "is immutable: create another Book")
	}
	return validate(ctx, book)
}

// validateScale checks what `kubectl scale` writes: the API server does not call the webhooks of
// books for it.
func validateScale(_ context.Context, scale *autoscalingv1.Scale) error {
	return checkCopies(field.NewPath("spec", "replicas"), scale.Spec.Replicas).ToAggregate()
}

func checkCopies(path *field.Path, copies int32) field.ErrorList {
	if copies < 0 || copies > 1000 {
		return field.ErrorList{field.Invalid(path, copies, "must be from 0 to 1000")}
	}
	return nil
}
