// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keepRotating advances rotations while this replica leads.
func (a *Authority) keepRotating(ctx context.Context) {
	for {
		timer := time.NewTimer(a.untilLook())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-a.secretRead:
			timer.Stop()
		case <-timer.C:
		}
		waitsFor, err := a.advance(ctx)
		if ctx.Err() != nil {
			return
		}
		a.tell(waitsFor, err)
	}
}

// untilLook is how long nothing can become due, apart from changes of the Secret.
func (a *Authority) untilLook() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != nil && a.state.phase == PhaseSteady && a.state.requested.IsZero() && a.rotationErr == nil {
		return time.Minute
	}
	return lookAgain
}

// advance takes the next step of a rotation, if one is due and this replica leads. It
// returns what the rotation waits for.
func (a *Authority) advance(ctx context.Context) (waitsFor string, err error) {
	if a.options.Leading != nil && !a.options.Leading() {
		return "", nil
	}
	a.mu.Lock()
	now, live := a.state, a.live
	at := situation{now: a.now(), seen: time.Since(a.seen), propagation: a.options.Propagation}
	at.serving = now != nil && a.signer != nil && a.signer.certificate.Equal(now.signer.certificate)
	a.mu.Unlock()
	if live == nil { // missing or unusable: nothing to continue from
		return "", nil
	}
	if a.options.Published == nil {
		if now.phase == PhaseSteady && now.requested.IsZero() {
			return "", nil
		}
		return "", errors.New("the CA bundles that clients trust are unknown: this server does not write the webhook configurations")
	}
	at.published, at.unknown = a.options.Published()
	step, waitsFor, err := now.next(at, func() (*issuer, error) { return newIssuer(at.now, a.options.Lifetime) })
	if err != nil || step == nil {
		return waitsFor, err
	}
	wanted, err := step.into(live)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err = a.options.Secrets.Update(ctx, wanted, metav1.UpdateOptions{}); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // the watch delivers the current Secret
			return "the current Secret", nil
		}
		return "", fmt.Errorf("update: %w", err)
	}
	// The watch delivers the written Secret, in order.
	if step.phase == PhaseSteady {
		a.metrics.rotations.Inc()
	}
	return "", nil
}

// tell records the progress of a rotation, and logs changes.
func (a *Authority) tell(waitsFor string, err error) {
	if err != nil {
		err = fmt.Errorf("rotation of the certificate authority in Secret %s: %w", a.options.SecretName, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil && (a.rotationErr == nil || a.rotationErr.Error() != err.Error()) {
		a.log.Error("certificate authority cannot be rotated", slog.Any("error", err))
	}
	if waitsFor != "" && waitsFor != a.waitsFor {
		a.log.Info("rotation of the certificate authority", slog.String("phase", string(a.state.phase)), slog.String("waitsFor", waitsFor))
	}
	a.rotationErr, a.waitsFor = err, waitsFor
}
