// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Watcher is a [Source] that follows the PodDefaults of a cluster. It lists and
// watches them once for all pods, compiles each when it changes, and keeps no
// more of them than that. When the API server is away it goes on with what it
// knows. See [Watch].
type Watcher struct {
	index     *Index
	reflector *cache.Reflector
	logger    *slog.Logger
	synced    atomic.Bool
	contact   contact
}

// Watch prepares a watcher of all namespaces; [Watcher.Run] starts it. The
// credentials in config must be allowed to list and watch
// poddefaults.kubeflow.org.
func Watch(config *rest.Config, logger *slog.Logger) (*Watcher, error) {
	scheme := runtime.NewScheme()
	if err := kubeflowv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &kubeflowv1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	w := &Watcher{index: NewIndex(), logger: logger}
	config.Wrap(w.contact.wrap)
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for PodDefaults: %w", err)
	}
	klogger := logr.FromSlogHandler(logger.Handler())
	w.reflector = cache.NewReflectorWithOptions(
		cache.NewListWatchFromClient(client, kubeflowv1alpha1.PodDefaultResource, metav1.NamespaceAll, fields.Everything()),
		&kubeflowv1alpha1.PodDefault{}, (*watcherStore)(w),
		cache.ReflectorOptions{
			Name:   "poddefaults",
			Logger: &klogger,
			// Jitter keeps replicas from coming back all at once.
			Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 5 * time.Second},
		},
	)
	return w, nil
}

// Run follows the PodDefaults until the context ends.
func (w *Watcher) Run(ctx context.Context) error {
	w.reflector.RunWithContext(ctx)
	return nil
}

// Ready is nil once all PodDefaults were read.
func (w *Watcher) Ready() error {
	if !w.synced.Load() {
		return errors.New("PodDefaults are not read yet (is their CRD installed, and may this server list them?)")
	}
	return nil
}

// Select implements [Source].
func (w *Watcher) Select(ctx context.Context, namespace string, pod Labels) ([]*Compiled, error) {
	if err := w.Ready(); err != nil {
		return nil, admission.Unavailable(err, time.Second)
	}
	return w.index.Select(ctx, namespace, pod)
}

// Len is the number of PodDefaults known.
func (w *Watcher) Len() int { return w.index.Len() }

// LastContact is when the API server has sent something the last time: PodDefaults, a
// change, or, about once a minute, that there was none. The zero time means never.
func (w *Watcher) LastContact() time.Time { return w.contact.last() }

// watcherStore is what the reflector writes to.
type watcherStore Watcher

func (s *watcherStore) Add(obj any) error {
	pd, ok := obj.(*kubeflowv1alpha1.PodDefault)
	if !ok {
		return fmt.Errorf("expected a PodDefault, got %T", obj)
	}
	s.index.Set(s.compile(pd))
	return nil
}

func (s *watcherStore) Update(obj any) error { return s.Add(obj) }

func (s *watcherStore) Delete(obj any) error {
	pd, ok := obj.(*kubeflowv1alpha1.PodDefault)
	if !ok {
		return fmt.Errorf("expected a PodDefault, got %T", obj)
	}
	s.index.Delete(pd.Namespace, pd.Name)
	return nil
}

func (s *watcherStore) Replace(objects []any, _ string) error {
	all := make([]*Compiled, 0, len(objects))
	for _, obj := range objects {
		pd, ok := obj.(*kubeflowv1alpha1.PodDefault)
		if !ok {
			return fmt.Errorf("expected a PodDefault, got %T", obj)
		}
		all = append(all, s.compile(pd))
	}
	s.index.Replace(all)
	s.synced.Store(true)
	return nil
}

func (s *watcherStore) Resync() error { return nil }

func (s *watcherStore) compile(pd *kubeflowv1alpha1.PodDefault) *Compiled {
	c := Compile(pd)
	if problem := c.Problem(); problem != nil {
		s.logger.Warn("PodDefault can never work and is left out", "namespace", pd.Namespace, "name", pd.Name, "problem", problem)
	}
	return c
}

var _ cache.ReflectorStore = (*watcherStore)(nil)
