// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/internal/store"
)

// profileStore holds the profile of a watched ConfigMap. If it becomes invalid or is
// deleted, the last valid profile stays.
type profileStore struct {
	ref       dataset.Ref
	logger    *slog.Logger
	changed   func()
	reflector *cache.Reflector
	now       atomic.Pointer[dataset.Profile]
	problem   atomic.Pointer[string] // why there is none yet
}

// followProfile watches a ConfigMap, unless it is already watched.
func (w *Watcher) followProfile(ref dataset.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.profiles[ref] != nil {
		return
	}
	p := &profileStore{ref: ref, logger: w.logger, changed: func() { tell(w.changed); w.loaded() }}
	source := cache.NewListWatchFromClient(w.core, "configmaps", ref.Namespace, fields.OneTermEqualSelector("metadata.name", ref.Name))
	p.reflector = store.Reflector("datasets: the profile of plugins", store.Soon, source, &corev1.ConfigMap{}, p)
	w.profiles[ref] = p
	tell(w.wanted)
}

// followProfiles runs the requested watches until the context ends.
func (w *Watcher) followProfiles(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	started := map[*profileStore]bool{}
	for {
		w.mu.Lock()
		for _, p := range w.profiles {
			if !started[p] {
				started[p] = true
				wg.Go(func() { p.reflector.RunWithContext(ctx) })
			}
		}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-w.wanted:
		}
	}
}

// ReadyFor returns nil if the settings name no ConfigMap, or once its profile has been
// read.
func (w *Watcher) ReadyFor(settings dataset.Settings) error {
	ref := settings.ProfileRef()
	if ref.Name == "" || settings.Disabled {
		return nil
	}
	_, err := w.profile(ref)
	return err
}

// profile returns the profile of a watched ConfigMap.
func (w *Watcher) profile(ref dataset.Ref) (*dataset.Object, error) {
	w.mu.Lock()
	p := w.profiles[ref]
	w.mu.Unlock()
	problem := "it is not read yet (may this server list and watch it?)"
	if p != nil {
		if now := p.now.Load(); now != nil {
			return &dataset.Object{Profile: now}, nil
		}
		if text := p.problem.Load(); text != nil {
			problem = *text
		}
	}
	return nil, admission.Unavailable(fmt.Errorf("%s with the profile of plugins: %s", ref, problem), time.Second)
}

// set reads the profile of a ConfigMap; nil means that it is missing.
func (p *profileStore) set(o *corev1.ConfigMap) {
	err := errors.New("it is not there: create it, or name another in pluginsProfileConfigMap")
	var profile *dataset.Profile
	if o != nil {
		profile, err = dataset.ProfileIn(o.Data)
	}
	if err == nil {
		p.now.Store(profile)
		p.logger.Info("the profile of plugins was read", "configmap", p.ref.Namespace+"/"+p.ref.Name)
		p.changed()
		return
	}
	text := err.Error()
	p.problem.Store(&text)
	until := "pods wait for one"
	if p.now.Load() != nil {
		until = "the previous one stays in effect"
	}
	p.logger.Error("invalid profile of plugins", "configmap", p.ref.Namespace+"/"+p.ref.Name, "until", until, "error", err)
}

// Add implements [cache.ReflectorStore].
func (p *profileStore) Add(obj any) error {
	o, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("%T is not a ConfigMap", obj)
	}
	p.set(o)
	return nil
}

// Update implements [cache.ReflectorStore].
func (p *profileStore) Update(obj any) error { return p.Add(obj) }

// Delete implements [cache.ReflectorStore].
func (p *profileStore) Delete(any) error {
	p.set(nil)
	return nil
}

// Replace implements [cache.ReflectorStore].
func (p *profileStore) Replace(objects []any, _ string) error {
	if len(objects) == 0 {
		p.set(nil)
		return nil
	}
	return p.Add(objects[0])
}

// Resync implements [cache.ReflectorStore].
func (p *profileStore) Resync() error { return nil }
