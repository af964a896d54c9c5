// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

func TestRightsThatWereWithdrawnAreTold(t *testing.T) {
	var failure error
	f := &Factory{}
	from := cache.ToListerWatcherWithContext(f.denied.noting("poddefaults", &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &metav1.PartialObjectMetadataList{}, failure
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), failure
		},
	}))
	resource := schema.GroupResource{Group: "kubeflow.org", Resource: "poddefaults"}
	for _, step := range []struct {
		what    string
		failure error
		watch   bool
		want    string
	}{
		{"all is well", nil, false, ""},
		{"the API server is away", errors.New("connection refused"), false, ""},
		{"the watch is forbidden", apierrors.NewForbidden(resource, "", errors.New("RBAC")), true, "poddefaults.kubeflow.org is forbidden"},
		{"the API server is away then", errors.New("connection refused"), false, "poddefaults.kubeflow.org is forbidden"},
		{"the right is back", nil, false, ""},
		{"the credentials are not", apierrors.NewUnauthorized("expired"), false, "expired"},
	} {
		failure = step.failure
		var err error
		if step.watch {
			_, err = from.WatchWithContext(t.Context(), metav1.ListOptions{})
		} else {
			_, err = from.ListWithContext(t.Context(), metav1.ListOptions{})
		}
		if !errors.Is(err, step.failure) {
			t.Fatalf("%s: %v", step.what, err)
		}
		if got := f.Denied(); (got == nil) != (step.want == "") || got != nil && !strings.Contains(got.Error(), step.want) {
			t.Errorf("%s: %v", step.what, got)
		}
	}
}
