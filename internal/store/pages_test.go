// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/test/lab"
)

// recorder is a store that passes on its input.
type recorder struct {
	replaced chan []any
	set      chan any
}

func (r recorder) Add(obj any) error                     { r.set <- obj; return nil }
func (r recorder) Update(obj any) error                  { r.set <- obj; return nil }
func (r recorder) Delete(any) error                      { return nil }
func (r recorder) Replace(objects []any, _ string) error { r.replaced <- objects; return nil }
func (r recorder) Resync() error                         { return nil }

// TestEveryPageIsReadOnARealAPIServer lists more objects than fit on a page, and
// watches a later one.
func TestEveryPageIsReadOnARealAPIServer(t *testing.T) {
	config := lab.APIServer(t)
	namespace := lab.Namespace(t, config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context, name string) error {
		_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	var want []string
	for i := range 2*pageSize + 1 {
		name := fmt.Sprintf("one-%04d", i)
		want = append(want, name)
		group.Go(func() error { return create(ctx, name) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	lists := 0
	list := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", namespace, fields.Everything())
	counted := inPages(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			lists++
			return list.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: list.WatchWithContext,
	}, func(c *corev1.ConfigMap) string { return c.Name })
	store := recorder{make(chan []any, 1), make(chan any, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Reflector("test", Soon, counted, &corev1.ConfigMap{}, store).RunWithContext(ctx)
	}()
	defer func() { cancel(); <-done }()
	got := map[string]bool{}
	for _, object := range <-store.replaced {
		got[object.(*digest[string]).of] = true
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) || lists != 3 {
		t.Errorf("%d objects in %d lists, want %d in 3", len(names), lists, len(want))
	}
	if err := create(t.Context(), "later"); err != nil {
		t.Fatal(err)
	}
	if later := (<-store.set).(*corev1.ConfigMap); later.Name != "later" {
		t.Errorf("%s came", later.Name)
	}
}
