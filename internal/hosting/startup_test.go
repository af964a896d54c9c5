// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAStartWaitsForWhatWillBeThere(t *testing.T) {
	refused := fmt.Errorf("--owner: %w", &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: syscall.ECONNREFUSED})
	for name, test := range map[string]struct {
		err   error
		mends func(error) bool
		waits bool
	}{
		"an API server that refuses connections":   {refused, IsAway, true},
		"one that is starting":                     {apierrors.NewServiceUnavailable("starting"), IsAway, true},
		"one that has too much to do":              {apierrors.NewTooManyRequestsError("later"), IsAway, true},
		"a right that is missing":                  {apierrors.NewForbidden(schema.GroupResource{}, "x", nil), IsAway, false},
		"an object that is not there":              {apierrors.NewNotFound(schema.GroupResource{}, "x"), IsAway, false},
		"an address that another process has":      {fmt.Errorf("listen: %w", syscall.EADDRINUSE), isTaken, true},
		"an address that this process cannot have": {fmt.Errorf("listen: %w", syscall.EACCES), isTaken, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				logger := slog.New(slog.NewTextHandler(&log, nil))
				tries, began := 0, time.Now()
				err := WaitFor(t.Context(), logger, "what is needed", test.mends, func(context.Context) error {
					if tries++; tries > 8 {
						return nil
					}
					return test.err
				})
				took := time.Since(began)
				if test.waits {
					// 0.25 + 0.5 + 1 + 2 + 4 + 5 + 5 + 5 s
					if err != nil || tries != 9 || took != 22750*time.Millisecond || strings.Count(log.String(), `msg=waiting for="what is needed"`) != 8 {
						t.Errorf("%d tries in %s: %v, %s", tries, took, err, log.String())
					}
				} else if !errors.Is(err, test.err) || tries != 1 || log.Len() > 0 {
					t.Errorf("%d tries: %v, %s", tries, err, log.String())
				}
			})
		})
	}
}

func TestAStartThatIsEndedDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := WaitFor(ctx, slog.New(slog.DiscardHandler), "x", isTaken, func(context.Context) error { return syscall.EADDRINUSE })
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("got %v", err)
		}
	})
}
