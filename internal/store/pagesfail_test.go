// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// A list of three pages, one of which may be missing.
// TestEveryPageIsReadOnARealAPIServer covers a real API server; this test covers its
// errors.
func threePages(missing int, err error) *cache.ListWatch {
	return &cache.ListWatch{ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page := len(options.Continue)
		if page == missing {
			return nil, err
		}
		list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		for i := range 2 {
			list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%d-%d", page, i)}})
		}
		if page < 2 {
			list.Continue = options.Continue + "x"
		}
		return list, nil
	}}
}

func TestPagesKeepTheirOrder(t *testing.T) {
	list, err := cache.ToListerWatcherWithContext(inPages(threePages(-1, nil), func(c *corev1.ConfigMap) string { return c.Name })).ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := list.(*digests)
	var names []string
	for _, item := range all.Items {
		names = append(names, item.(*digest[string]).of)
	}
	if got := fmt.Sprint(names); got != "[0-0 0-1 1-0 1-1 2-0 2-1]" || all.ResourceVersion != "7" {
		t.Errorf("got %s of version %s", got, all.ResourceVersion)
	}
}

func TestAPageThatIsMissingFailsTheList(t *testing.T) {
	for missing := range 3 {
		want := apierrors.NewResourceExpired("too old")
		list, err := cache.ToListerWatcherWithContext(inPages(threePages(missing, want), func(c *corev1.ConfigMap) string { return c.Name })).ListWithContext(t.Context(), metav1.ListOptions{})
		if !errors.Is(err, want) || list != nil { // the reflector asks what kind of error it is
			t.Errorf("page %d is missing: got %v and the error %v", missing, list, err)
		}
	}
}
