// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/certificate"
)

// rotationPoll is the polling interval of a pending rotation.
const rotationPoll = time.Second

// Rotate requests a rotation from the leader. If timeout is not 0, it waits up to that
// long until the old authority is dropped, and prints each phase.
func (a Authority) Rotate(ctx context.Context, out io.Writer, timeout time.Duration) error {
	secrets := a.Clients.Secrets.Secrets(a.Namespace)
	before, err := certificate.RequestRotation(ctx, secrets, a.Name, time.Now())
	if err != nil {
		return a.about(err)
	}
	if _, err := fmt.Fprintf(out, "rotation of the authority in Secret %s/%s requested\n", a.Namespace, a.Name); err != nil || timeout == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(rotationPoll)
	defer ticker.Stop()
	told := certificate.PhaseSteady
	var problem error
	for {
		var now *certificate.Status
		if secret, err := secrets.Get(ctx, a.Name, metav1.GetOptions{}); err != nil {
			problem = err // the API server may be unavailable for a moment
		} else if now, problem = certificate.ReadStatus(secret); problem == nil {
			replaced := now.Phase == certificate.PhaseSteady && !now.Signer.Equal(before.Signer)
			if now.Phase != told {
				told = now.Phase
				if _, err := fmt.Fprintln(out, told); err != nil {
					return err
				}
			}
			if replaced {
				_, err := fmt.Fprintf(out, "done: the new authority is SHA-256 %s\n", fingerprint(now.Signer))
				return err
			}
		}
		select {
		case <-ctx.Done():
			err := fmt.Errorf("the rotation is still in progress (%w) and continues without this command: see 'sallyport certificates status'", ctx.Err())
			if told == certificate.PhaseSteady {
				err = fmt.Errorf("no server has begun the rotation (%w): see by 'sallyport certificates status' who leads", ctx.Err())
			}
			return a.about(errors.Join(err, problem))
		case <-ticker.C:
		}
	}
}
