// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errRotating means that a rotation cannot be requested because one is already requested or
// in progress.
var errRotating = errors.New("a rotation is already in progress")

type secretUpdater interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error)
	Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error)
}

// RequestRotation requests a rotation of the authority in a Secret, and returns its
// previous status. The leader begins the rotation. Secrets is a typed client of client-go,
// with the rights to get and update the Secret. The error is that a rotation is already
// requested or in progress, an error of the API server, or that the Secret has no authority.
func RequestRotation(ctx context.Context, secrets secretUpdater, name string, now time.Time) (*Status, error) {
	for attempt := 1; ; attempt++ {
		secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		status, err := ReadStatus(secret)
		if err != nil {
			return nil, err
		}
		switch {
		case status.Phase != PhaseSteady:
			return status, fmt.Errorf("%w: in phase %s since %s", errRotating, status.Phase, status.Since.UTC().Format(time.RFC3339))
		case !status.Requested.IsZero():
			return status, fmt.Errorf("%w: requested at %s, waiting for a leader", errRotating, status.Requested.UTC().Format(time.RFC3339))
		}
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, rotationRequestAnnotation, now.UTC().Format(time.RFC3339))
		if _, err = secrets.Update(ctx, secret, metav1.UpdateOptions{}); err == nil {
			return status, nil
		}
		if !apierrors.IsConflict(err) || attempt == 5 {
			return nil, fmt.Errorf("update: %w", err)
		}
	}
}
