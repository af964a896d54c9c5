// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the recordings show must be what the API server sends today, apart from
// what it makes up anew each time.
func TestRecordedReviewsAreCurrentOnARealAPIServer(t *testing.T) {
	fresh, err := capture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recordings {
		t.Run(r.name, func(t *testing.T) {
			recorded, err := loadReview(r.name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(timeless(t, fresh[r.name]), timeless(t, recorded.body)); diff != "" {
				t.Errorf("run `go run ./cmd/test/bench -capture` (- sent today, + recorded):\n%s", diff)
			}
		})
	}
}

func TestRecordedReviewsHaveTheSizesThatAreCompared(t *testing.T) {
	tests := map[string]struct{ least, most int }{
		"minimal":            {2_000, 3_000},
		"minimal-selecting":  {2_000, 3_000},
		"notebook":           {6_500, 8_000},
		"notebook-selecting": {6_500, 8_000},
		"notebook-always":    {6_500, 8_000},
		"notebook-datasets":  {6_500, 8_500},
		"service":            {1_000, 3_000},
		"namespace":          {1_000, 2_000},
		"namespace-stamped":  {1_000, 2_000},
	}
	for _, r := range recordings {
		t.Run(r.name, func(t *testing.T) {
			got, err := loadReview(r.name)
			if err != nil {
				t.Fatal(err)
			}
			if size := len(got.body); size < tests[r.name].least || size > tests[r.name].most {
				t.Errorf("%d bytes, want %d to %d", size, tests[r.name].least, tests[r.name].most)
			}
		})
	}
}

var (
	generated  = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)
	identifier = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	instant    = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
)

// timeless is a review without identifiers, times and generated names.
func timeless(t *testing.T, review []byte) any {
	t.Helper()
	var document any
	if err := json.Unmarshal(review, &document); err != nil {
		t.Fatal(err)
	}
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for key := range v {
				v[key] = walk(v[key])
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case string:
			switch {
			case identifier.MatchString(v):
				return "an identifier"
			case instant.MatchString(v):
				return "a time"
			}
			return generated.ReplaceAllString(v, "a generated name")
		}
		return v
	}
	return walk(document)
}
