// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/sallyport-io/sallyport/sallyporttest"
)

func TestNothingIsLostBetweenVersions(t *testing.T) {
	sallyporttest.RoundTrips(t, application(t).Converters()[0], sallyporttest.RoundTripOptions{Seed: 1})
}

func TestEditsReplaceWhatIsStashed(t *testing.T) {
	const meta = `"kind":"Book","metadata":{"name":"b","annotations":{"bookstore.example.com/v1":"{\"authors\":[\"A\",\"B\"],\"currency\":\"GBP\"}"}}`
	for name, tc := range map[string]struct{ in, want string }{
		"the first author": {
			`{"apiVersion":"bookstore.example.com/v1beta1",` + meta + `,"spec":{"author":"C"}}`,
			`{"apiVersion":"bookstore.example.com/v1","kind":"Book","metadata":{"name":"b"},"spec":{"authors":["C"]}}`,
		},
		"a removed price": {
			`{"apiVersion":"bookstore.example.com/v1beta1",` + meta + `,"spec":{"author":"A"}}`,
			`{"apiVersion":"bookstore.example.com/v1","kind":"Book","metadata":{"name":"b"},"spec":{"authors":["A","B"]}}`,
		},
		"another price": {
			`{"apiVersion":"bookstore.example.com/v1beta1",` + meta + `,"spec":{"author":"A","priceCents":5}}`,
			`{"apiVersion":"bookstore.example.com/v1","kind":"Book","metadata":{"name":"b"},"spec":{"authors":["A","B"],"price":{"cents":5,"currency":"GBP"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := application(t).Converters()[0].Convert(t.Context(), []byte(tc.in), "v1")
			if err != nil || string(got) != tc.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}
