// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestKindsAreReadTogether(t *testing.T) {
	second := make(chan struct{})
	said := func(text string, err error) func(context.Context, io.Writer) error {
		return func(_ context.Context, notes io.Writer) error {
			switch text {
			case "first":
				<-second // which is not read after it
			case "second":
				close(second)
			}
			_, _ = io.WriteString(notes, text+"\n")
			return err
		}
	}
	var notes strings.Builder
	first := errors.New("no second")
	err := Together(t.Context(), &notes, said("first", nil), said("second", first), said("third", errors.New("no third")))
	if !errors.Is(err, first) || notes.String() != "first\nsecond\n" {
		t.Errorf("%v, %q", err, notes.String())
	}
}
