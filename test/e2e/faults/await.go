// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// await tries until the condition returns nil. It ends early if ctx does or the
// condition returns a [final] error.
func await(ctx context.Context, patience time.Duration, what string, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := condition(ctx)
		var end *finalError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &end):
			return fmt.Errorf("waited in vain for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s in vain for %s; last: %w", patience, what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// final says that waiting longer is of no use.
func final(err error) error { return &finalError{err} }

type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// sleep waits, and tells whether ctx lasted that long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// getOK is nil if the URL answers with 200.
func getOK(ctx context.Context, client *http.Client, url string) error {
	_, err := get(ctx, client, url)
	return err
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text[:min(len(text), 300)]))
	}
	return text, err
}
