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

// WantSidecars says whether pods get sidecars. If so, the ConfigMap with the scripts that
// they run is created in each namespace with a Dataset: here, ahead of time, because a
// handler writes nothing.
func (w *Watcher) WantSidecars(want bool) {
	if w.sidecars.Swap(want) != want {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// prepare creates ConfigMaps until the context ends. Every replica does: the ConfigMap is
// the same, and one that is there already is as good.
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
		if w.sidecars.Load() {
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
