// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options of the manager's cache that an application replaces lose nothing that is declared, and
// what they say of a kind is said once.
func TestDeclaredKindsAreAddedToOtherOptions(t *testing.T) {
	shop := cache.ByObject{Namespaces: map[string]cache.Config{"shop": {}}}
	for name, c := range map[string]struct {
		declared, given map[client.Object]cache.ByObject
		namespaces      int
		problem         string
	}{
		"declared alone": {map[client.Object]cache.ByObject{&corev1.Pod{}: shop}, nil, 1, ""},
		"beside others":  {map[client.Object]cache.ByObject{&corev1.Pod{}: shop}, map[client.Object]cache.ByObject{&corev1.Secret{}: {}}, 1, ""},
		"given":          {map[client.Object]cache.ByObject{&corev1.Pod{}: {}}, map[client.Object]cache.ByObject{&corev1.Pod{}: shop}, 1, ""},
		"both":           {map[client.Object]cache.ByObject{&corev1.Pod{}: shop}, map[client.Object]cache.ByObject{&corev1.Pod{}: {}}, 1, "both say what is kept of Pod of v1"},
	} {
		t.Run(name, func(t *testing.T) {
			var kinds []Kind
			for object, kept := range c.declared {
				kinds = append(kinds, Kind{Object: object, ByObject: kept})
			}
			f, err := NewFilling(scheme.Scheme, kinds, slog.New(slog.DiscardHandler), nil)
			if err != nil {
				t.Fatal(err)
			}
			options := cache.Options{ByObject: c.given}
			err = f.Complete(&options)
			if err != nil || c.problem != "" {
				if err == nil || c.problem == "" || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("got %v", err)
				}
				return
			}
			pods := 0
			for object, kept := range options.ByObject {
				if _, ok := object.(*corev1.Pod); ok {
					pods++
					if len(kept.Namespaces) != c.namespaces {
						t.Errorf("pods are kept of %v", kept.Namespaces)
					}
				}
			}
			if pods != 1 || len(f.kinds[0].Namespaces) != c.namespaces || options.NewInformer == nil {
				t.Errorf("got %+v", options)
			}
		})
	}
}
