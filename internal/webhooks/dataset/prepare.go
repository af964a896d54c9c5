// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// prepareAgain is how long a ConfigMap is trusted to be there.
	prepareAgain = 10 * time.Minute
	// prepareRetry is when it is tried again after an error.
	prepareRetry = 10 * time.Second
)

// Want says what the settings are. A profile that is in a ConfigMap is followed from now
// on.
func (w *Watcher) Want(settings Settings) {
	profile, err := settings.profile()
	w.sidecars.Store(err == nil && profile != nil && profile.sidecars() && !settings.Disabled)
	if ref := settings.profileRef(); ref.Name != "" && !settings.Disabled {
		w.followProfile(ref)
	}
	tell(w.changed)
}

// wantsSidecars tells whether pods get sidecars.
func (w *Watcher) wantsSidecars() bool {
	if w.sidecars.Load() {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.profiles {
		if now := p.now.Load(); now != nil && now.sidecars() {
			return true
		}
	}
	return false
}

// tell wakes up who waits, unless that is done already.
func tell(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// prepare creates the ConfigMap with the scripts that sidecars run in each namespace with a
// Dataset, if pods get any, until the context ends: here, ahead of time, because a handler
// writes nothing. Every replica does: the ConfigMap is the same, and one that is there
// already is as good.
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

// prepareAll sees to all namespaces, and tells when to come back.
func (w *Watcher) prepareAll(ctx context.Context, prepared map[string]time.Time) time.Duration {
	next := prepareAgain
	namespaces := w.index.datasetNamespaces()
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
			w.logger.Warn("the ConfigMap that sidecars need cannot be created: pods with sidecars wait for it", "namespace", namespace, "name", ScriptsName(), "error", err)
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
	body, err := json.Marshal(scripts(namespace))
	if err != nil {
		return err
	}
	err = w.reader.core.Post().Namespace(namespace).Resource("configmaps").SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
