// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// Eventually asks again and again until the condition holds; an error is a reason why it
// does not yet. What names it for people. The test fails after the limit, or if ctx ends.
func Eventually(ctx context.Context, t testing.TB, limit time.Duration, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	err := Await(ctx, limit, what, func(ctx context.Context) error {
		ok, err := condition(ctx)
		if err == nil && !ok {
			err = errNotYet
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var errNotYet = errors.New("it is not so yet")

// Await asks again and again until the condition returns nil. What names it for people. It
// fails after the limit, if ctx ends, and at once if the condition returns a [Final] error.
// Asking costs the machine on which others work, so a pause is a tenth of the time waited so
// far, and at most half a second.
func Await(ctx context.Context, limit time.Duration, what string, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	for {
		err := condition(ctx)
		var final *finalError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &final):
			return fmt.Errorf("waited in vain for %s: %w", what, err)
		case !Sleep(ctx, min(max(firstPause, time.Since(began)/10), maxPause)):
			return fmt.Errorf("waited %s in vain for %s; last: %w", limit, what, err)
		}
	}
}

const firstPause, maxPause = 20 * time.Millisecond, 500 * time.Millisecond

// Final is an error after which a condition is not asked again.
func Final(err error) error { return &finalError{err} }

type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// Sleep waits, and tells whether ctx lasted that long.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Get reads what a URL answers, which has to be 200.
func Get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(text[:min(len(text), 300)]))
	}
	return text, err
}
