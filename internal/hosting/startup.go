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

// Timeouts of a starting server. It waits for what it needs instead of exiting: the kubelet's
// crash-loop back-off would delay it by up to five minutes after the cause is gone.
const (
	firstWait, maxWait = 250 * time.Millisecond, 5 * time.Second
	// portPatience is for an address in use. On the host network, the previous process is about
	// to end. If another program uses the address, it is a misconfiguration.
	portPatience = 30 * time.Second
)

// WaitFor retries until try succeeds, returns an error that retrying does not fix, or ctx ends.
// It logs what it waits for.
func WaitFor(ctx context.Context, logger *slog.Logger, what string, mends func(error) bool, try func(context.Context) error) error {
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
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

// IsAway reports whether an error means that the API server is unavailable or overloaded.
func IsAway(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= 500 || status.Status().Code == 429
	}
	_, unreached := errors.AsType[*url.Error](err)
	return unreached || errors.Is(err, context.DeadlineExceeded)
}

// isTaken reports whether an error means that an address is in use.
func isTaken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// Listen binds the addresses. It waits if one is in use.
func (h *Host) Listen(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, portPatience)
	defer cancel()
	return WaitFor(patient, h.logger, "an address that is in use", isTaken, h.server.Listen)
}
