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

// ErrRotating says that a rotation cannot be asked for because one was asked for
// already, or is going on.
var ErrRotating = errors.New("a rotation is already going on")

// SecretUpdater is what asking for a rotation needs: a typed client of client-go is
// one. RBAC: get and update on the Secret by name.
type SecretUpdater interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error)
	Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error)
}

// RequestRotation asks the authority in a Secret for a rotation, and returns what
// the Secret said before. Whoever leads begins it. The error is [ErrRotating], that
// of the API server, or says that the Secret holds no authority.
func RequestRotation(ctx context.Context, secrets SecretUpdater, name string, now time.Time) (*Status, error) {
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
			return status, fmt.Errorf("%w: it is in the phase %s since %s", ErrRotating, status.Phase, status.Since.UTC().Format(time.RFC3339))
		case !status.Requested.IsZero():
			return status, fmt.Errorf("%w: it was asked for at %s and waits for a server that leads", ErrRotating, status.Requested.UTC().Format(time.RFC3339))
		}
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, RotationRequestAnnotation, now.UTC().Format(time.RFC3339))
		if _, err = secrets.Update(ctx, secret, metav1.UpdateOptions{}); err == nil {
			return status, nil
		}
		if !apierrors.IsConflict(err) || attempt == 5 {
			return nil, fmt.Errorf("update: %w", err)
		}
	}
}
