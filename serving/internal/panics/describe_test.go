// SPDX-License-Identifier: Apache-2.0

package panics

import "testing"

type namedPanic struct{}

func (namedPanic) Panicked() (webhook, text string) { return "check.example.com", "boom" }

func TestAPanicIsDescribedByItsHandlerOrItsType(t *testing.T) {
	var empty []int
	at := 0
	outOfRange := func() (value any) {
		defer func() { value = recover() }()
		return empty[at]
	}
	for _, tc := range []struct {
		value         any
		webhook, text string
	}{
		{"s3cret", "", "value of type string"},
		{outOfRange(), "", "runtime error: index out of range [0] with length 0"},
		{namedPanic{}, "check.example.com", "boom"},
	} {
		if webhook, text := Describe(tc.value); webhook != tc.webhook || text != tc.text {
			t.Errorf("%T: webhook %q, text %q", tc.value, webhook, text)
		}
	}
}
