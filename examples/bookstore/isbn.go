// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/sallyport-io/sallyport/examples/bookstore/api/v1"
)

// isbnIndex finds Books by their ISBN, for webhooks and the controller.
const isbnIndex = "isbn"

func isbn(book *v1.Book) []string { return []string{book.Spec.ISBN} }

// oldestOther is the oldest of the other Books with the ISBN of a Book, or nil.
func oldestOther(ctx context.Context, reader client.Reader, book *v1.Book) (oldest *v1.Book, err error) {
	var same v1.BookList
	if err := reader.List(ctx, &same, client.MatchingFields{isbnIndex: book.Spec.ISBN}); err != nil {
		return nil, err
	}
	for i := range same.Items {
		other := &same.Items[i]
		if other.Namespace == book.Namespace && other.Name == book.Name {
			continue
		}
		if oldest == nil || older(other, oldest) {
			oldest = other
		}
	}
	return oldest, nil
}

// older orders Books of the same second by their UID.
func older(a, b *v1.Book) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.UID < b.UID
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// isISBN verifies the check digit: digits count 1 and 3 in turn, and the sum is a multiple of 10.
func isISBN(isbn string) bool {
	sum := 0
	for i, digit := range isbn {
		if digit < '0' || digit > '9' {
			return false
		}
		sum += int(digit-'0') * (1 + i%2*2)
	}
	return len(isbn) == 13 && sum%10 == 0
}
