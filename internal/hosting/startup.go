// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// How a start waits for what it needs. To end instead would be to crash in a loop, whose
// back-off is that of the kubelet: up to five minutes after all is well.
const (
	firstWait, longestWait = 250 * time.Millisecond, 5 * time.Second
	// portPatience is for an address that another process has: the one before this one, on a host's
	// network, is about to end. Somebody else's is a misconfiguration.
	portPatience = 30 * time.Second
)

// WaitFor tries until it succeeds, the error is one that waiting does not mend, or
// ctx ends, and says what it waits for.
func WaitFor(ctx context.Context, logger *slog.Logger, what string, mends func(error) bool, try func(context.Context) error) error {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := try(ctx)
		if err == nil || ctx.Err() != nil || !mends(err) {
			return err
		}
		logger.Warn("waiting", "for", what, "error", err, "again", wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// IsAway tells whether an error is that of an API server that is not there yet, or has
// too much to do.
func IsAway(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= 500 || status.Status().Code == 429
	}
	_, unreached := errors.AsType[*url.Error](err)
	return unreached || errors.Is(err, context.DeadlineExceeded)
}

// isTaken tells whether an error is that of an address that is in use.
func isTaken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// Listen binds the addresses, and waits for one that is in use.
func (h *Host) Listen(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, portPatience)
	defer cancel()
	return WaitFor(patient, h.logger, "an address that is in use", isTaken, h.server.Listen)
}
