// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/sallyport-io/sallyport/wire"
)

// BenchmarkConversion is what a recorded review costs without the server around it.
func BenchmarkConversion(b *testing.B) {
	all, err := converters()
	if err != nil {
		b.Fatal(err)
	}
	handler, err := wire.NewConversion(all, wire.ConversionOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{conversionReview, conversionReview2} {
		b.Run(name, func(b *testing.B) {
			r, err := loadConversion(name)
			if err != nil {
				b.Fatal(err)
			}
			answer, err := handler.Review(b.Context(), r.body)
			if err == nil {
				err = verifyConversion(answer, r)
			}
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := handler.Review(b.Context(), r.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
