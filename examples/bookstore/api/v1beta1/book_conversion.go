// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"github.com/sallyport-io/sallyport/conversion"
	v1 "github.com/sallyport-io/sallyport/examples/bookstore/api/v1"
)

// stashAnnotation holds what this version has no field for.
const stashAnnotation = "bookstore.example.com/v1"

type stash struct {
	Authors  []string `json:"authors,omitempty"`
	Currency string   `json:"currency,omitempty"`
}

// ConvertTo converts to the hub.
func (in *Book) ConvertTo(dst conversion.Hub) error {
	hub := dst.(*v1.Book)
	hub.ObjectMeta = in.ObjectMeta
	var stashed stash
	conversion.Restore(hub, stashAnnotation, &stashed)
	hub.Spec.Title = in.Spec.Title
	hub.Spec.ISBN = in.Spec.ISBN
	hub.Spec.Copies = in.Spec.Copies
	hub.Spec.SetAuthor(in.Spec.Author, stashed.Authors)
	if in.Spec.PriceCents != nil {
		hub.Spec.Price = &v1.Price{Cents: *in.Spec.PriceCents, Currency: stashed.Currency}
	}
	hub.Status = v1.BookStatus(in.Status)
	return nil
}

// ConvertFrom converts from the hub.
func (in *Book) ConvertFrom(src conversion.Hub) error {
	hub := src.(*v1.Book)
	in.ObjectMeta = hub.ObjectMeta
	in.Spec.Title = hub.Spec.Title
	in.Spec.ISBN = hub.Spec.ISBN
	in.Spec.Copies = hub.Spec.Copies
	in.Spec.Author = hub.Spec.Author()
	in.Status = BookStatus(hub.Status)
	lost := stash{Authors: hub.Spec.AuthorsToStash()}
	if price := hub.Spec.Price; price != nil {
		in.Spec.PriceCents, lost.Currency = &price.Cents, price.Currency
	}
	if len(lost.Authors) == 0 && lost.Currency == "" {
		return nil
	}
	return conversion.Stash(in, stashAnnotation, lost)
}
