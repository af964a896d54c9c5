// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/scripts"
)

const (
	// prepareAgain is how long a ConfigMap is assumed to exist.
	prepareAgain = 10 * time.Minute
	// prepareRetry is the delay after an error.
	prepareRetry = 10 * time.Second
)

// Want applies settings. From now on it watches the ConfigMap that they name, if any.
func (w *Watcher) Want(settings dataset.Settings) {
	profile, err := settings.Profile()
	w.sidecars.Store(err == nil && profile != nil && profile.Sidecars() && !settings.Disabled)
	if ref := settings.ProfileRef(); ref.Name != "" && !settings.Disabled {
		w.followProfile(ref)
	}
	tell(w.changed)
}

// wantsSidecars reports whether pods get sidecars.
func (w *Watcher) wantsSidecars() bool {
	if w.sidecars.Load() {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.profiles {
		if now := p.now.Load(); now != nil && now.Sidecars() {
			return true
		}
	}
	return false
}

// tell wakes the waiter, unless it is already woken.
func tell(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// prepare creates the ConfigMap with the scripts of sidecars in each namespace with a
// Dataset, if pods get sidecars, until the context ends. It does so ahead of time,
// because handlers must not write. Every replica does: the ConfigMap is identical, and
// an existing one is fine.
func (w *Watcher) prepare(ctx context.Context) {
	prepared := map[string]time.Time{}
	timer := time.NewTimer(prepareAgain)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		case <-timer.C:
		}
		next := prepareAgain
		if w.wantsSidecars() {
			next = w.prepareAll(ctx, prepared)
		}
		timer.Reset(next)
	}
}

// prepareAll covers all namespaces and returns when to run again.
func (w *Watcher) prepareAll(ctx context.Context, prepared map[string]time.Time) time.Duration {
	next := prepareAgain
	namespaces := w.index.DatasetNamespaces()
	current := make(map[string]bool, len(namespaces))
	for _, namespace := range namespaces {
		current[namespace] = true
		if at, ok := prepared[namespace]; ok && time.Since(at) < prepareAgain/2 {
			continue
		}
		if err := w.createScripts(ctx, namespace); err != nil {
			if ctx.Err() != nil {
				return next
			}
			w.logger.Warn("the ConfigMap that sidecars need cannot be created: pods with sidecars wait for it", "namespace", namespace, "name", scripts.Name(), "error", err)
			next = prepareRetry
			continue
		}
		prepared[namespace] = time.Now()
	}
	for namespace := range prepared {
		if !current[namespace] {
			delete(prepared, namespace)
		}
	}
	return next
}

func (w *Watcher) createScripts(ctx context.Context, namespace string) error {
	body, err := json.Marshal(scripts.ConfigMap(namespace))
	if err != nil {
		return err
	}
	err = w.reader.core.Post().Namespace(namespace).Resource("configmaps").SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
