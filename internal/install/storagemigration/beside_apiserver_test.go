// SPDX-License-Identifier: Apache-2.0

package storagemigration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/install/authority"
	"github.com/sallyport-io/sallyport/internal/install/storagemigration"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// The authority of the replicas that convert is rotated while ours and Kubernetes' own migrator
// rewrite the same objects, and a user writes them.
func TestMigrationBesideKubernetesOwnAndOverARotationOnARealAPIServer(t *testing.T) {
	t.Parallel()
	s := open(t, []string{"widgets"}, nil, sallyporttest.WithSettings(func(settings *sallyport.Settings) { settings.Certificate.Propagation = 3 * time.Second }))
	const objects = 150
	s.fill(t, "widgets", objects)
	was := s.list(t, "widgets")
	s.store(t, "widgets", after)

	// Some objects are written in the old version again and again, which is converted each time.
	writing, stopWriting := context.WithCancel(t.Context())
	var users sync.WaitGroup
	t.Cleanup(users.Wait)
	t.Cleanup(stopWriting)
	users.Go(func() {
		for i := 0; lab.Sleep(writing, 50*time.Millisecond); i = (i + 1) % 10 {
			name := fmt.Sprintf("o%04d", i)
			object, err := s.of("widgets", before).Get(writing, name, metav1.GetOptions{})
			if err == nil {
				_, err = s.of("widgets", before).Update(writing, object, metav1.UpdateOptions{FieldManager: "test"})
			}
			if err != nil && !apierrors.IsConflict(err) && writing.Err() == nil {
				t.Errorf("%s: %v", name, err)
				return
			}
		}
	})

	// Kubernetes' own looks for new kinds twice a minute.
	own := lab.KubernetesMinor(t) >= 37 // it is served by default since then
	migrations := s.objects.Resource(schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"})
	if own {
		lab.StartBinary(t, "kube-controller-manager", "--kubeconfig", sallyporttest.Kubeconfig(t, s.config),
			"--leader-elect=false", "--secure-port", "0", "--controllers", "storage-version-migrator-controller,garbage-collector-controller")
		_, err := migrations.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration", "metadata": map[string]any{"name": "widgets"},
			"spec": map[string]any{"resource": map[string]any{"group": group, "resource": "widgets"}},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.run(t, "widgets", storagemigration.Pace{Page: 20, PerSecond: 10})
	s.awaitMiddle(t, "widgets", after)

	clients, err := hosting.NewClients(s.config)
	if err != nil {
		t.Fatal(err)
	}
	var phases strings.Builder
	if err := (authority.Authority{Clients: clients, Namespace: "default", Name: "shop-authority"}).Rotate(t.Context(), &phases, 2*time.Minute); err != nil {
		t.Fatalf("%v\n%s", err, &phases)
	}
	s.awaitStored(t, "widgets", after)
	if own {
		lab.Eventually(t.Context(), t, 4*time.Minute, "Kubernetes' own migration to succeed", func(ctx context.Context) (bool, error) {
			migration, err := migrations.Get(ctx, "widgets", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			conditions, _, err := unstructured.NestedSlice(migration.Object, "status", "conditions")
			for _, condition := range conditions {
				if condition, ok := condition.(map[string]any); ok && condition["type"] == "Succeeded" && condition["status"] == "True" {
					return true, nil
				}
			}
			return false, errors.Join(err, fmt.Errorf("its conditions are %v", conditions))
		})
	}
	stopWriting()
	users.Wait()
	if got := s.inEtcd(t, "widgets"); len(got) != 1 || got[after] != objects {
		t.Errorf("stored are %v", got)
	}
	is := s.list(t, "widgets")
	for _, of := range []map[string]unstructured.Unstructured{was, is} { // the user wrote them
		for _, object := range of {
			object.SetManagedFields(nil)
		}
	}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("objects have changed:\n%s", diff)
	}
}
