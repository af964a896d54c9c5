// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/internal/wire"
)

// The floor of a LIST gives an answer that the API server takes.
func TestTheConversionFloorConvertsWhatIsRecorded(t *testing.T) {
	r, err := loadConversion(conversionReview2)
	if err != nil {
		t.Fatal(err)
	}
	answer, ok := appendCheapConversion(nil, r.body)
	if !ok {
		t.Fatal("it refuses the recorded review")
	}
	if err := verifyConversion(answer, r); err != nil {
		t.Error(err)
	}
	for _, other := range []string{"", "{}", strings.Replace(string(r.body), `"response"`, `"nothing"`, 1)} {
		if _, ok := appendCheapConversion(nil, []byte(other)); ok {
			t.Errorf("it answers %.40s", other)
		}
	}
}

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
