// SPDX-License-Identifier: Apache-2.0

package callmetrics

import (
	"context"
	"errors"
	"io"
	"time"

	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Watch shows the usage within a window, once or repeatedly. A window of 0 means since the
// start of the API server. If interrupted, it shows the partial window. If another API server
// answers, it reports that on notes and restarts the window.
func Watch(ctx context.Context, client rest.Interface, window time.Duration, again bool, notes io.Writer, show func([]*Usage, time.Duration) error) error {
	before, err := Read(ctx, client)
	if err != nil {
		return err
	}
	if window == 0 {
		usages, err := Usages(nil, before)
		if err != nil {
			return err
		}
		return show(usages, 0)
	}
	manifest.Note(notes, "counting for %s", window)
	for others := 0; ; {
		interrupted := false
		select {
		case <-ctx.Done():
			interrupted = true
		case <-time.After(window):
		}
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		after, err := Read(reading, client)
		cancel()
		if err != nil {
			return err
		}
		usages, err := Usages(before, after)
		if errors.Is(err, ErrOtherServer) && !interrupted && others < 10 {
			manifest.Note(notes, "note: another kube-apiserver answered, or it has restarted: counting anew")
			before = after
			others++
			continue
		}
		if err != nil {
			return err
		}
		if err := show(usages, after.At.Sub(before.At)); err != nil {
			return err
		}
		if interrupted || !again {
			return nil
		}
		before, others = after, 0
	}
}
