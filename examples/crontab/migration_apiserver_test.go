// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// migration is what docs/conversion.md has one create.
const migration = "config/migration/storageversionmigration.yaml"

// Kubernetes writes all objects in the new storage version, which it converts with the
// operator's help, and takes the old one from the definition.
func TestKubernetesMigratesStoredObjectsOnARealAPIServer(t *testing.T) {
	t.Parallel()
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crd(t)))
	if lab.KubernetesMinor(t) < 37 { // by default it is served since then
		if out, err := kubectl(t.Context(), t, config, "create", "-f", migration); err == nil || !strings.Contains(out, `no matches for kind "StorageVersionMigration"`) {
			t.Errorf("kubectl: %s, %v", out, err)
		}
		return
	}
	cluster := clientFor(t, config)
	stop := start(t, config, freeport.For(t), operator(t), nil)
	// The API server learns of the webhooks and of the conversion stanza from two watches. Until it
	// knows the latter, it sends unconverted objects to webhooks for another version.
	eventually(t.Context(), t, "the API server converts", func() error {
		probe := &v1beta1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "converted"}, Spec: v1beta1.CronTabSpec{Schedule: schedule("0", "3"), Image: "i"}}
		if err := client.IgnoreAlreadyExists(cluster.Create(t.Context(), probe)); err != nil {
			return err
		}
		var got v1.CronTab
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(probe), &got); err != nil || got.Spec.CronSpec == "" {
			return fmt.Errorf("%+v: %w", got.Spec, err)
		}
		return nil
	})
	eventually(t.Context(), t, "the API server calls the webhooks", func() error {
		probe := &v1beta1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}, Spec: v1beta1.CronTabSpec{Schedule: schedule("0", "3")}}
		if err := cluster.Create(t.Context(), probe, client.DryRunAll); err != nil || probe.Spec.Image == "" {
			return fmt.Errorf("no defaults in %+v: %w", probe.Spec, err)
		}
		return nil
	})
	const count = 50
	for i := range count {
		object := &v1beta1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("c%04d", i)},
			Spec: v1beta1.CronTabSpec{Schedule: schedule("0", "3"), Image: "i", Replicas: new(int32(1 + i%10))}}
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	lab.StartBinary(t, "kube-controller-manager", "--kubeconfig", sallyporttest.Kubeconfig(t, config),
		"--leader-elect=false", "--secure-port", "0", "--controllers", "storage-version-migrator-controller,garbage-collector-controller")
	ctx, cancel := context.WithTimeout(t.Context(), patience) // the controller looks for kinds twice a minute
	defer cancel()

	edit(ctx, t, cluster, setVersions("v1alpha1 v1beta1 v1", "v1"))
	eventually(ctx, t, "objects are stored as v1 from now on", func() error {
		return stores(ctx, cluster, "v1beta1", "v1")
	})
	if out, err := kubectl(ctx, t, config, "create", "-f", migration); err != nil {
		t.Fatalf("kubectl: %s, %v", out, err)
	}
	if out, err := kubectl(ctx, t, config, "wait", "storageversionmigration/crontabs", "--for=condition=Succeeded", "--timeout=150s"); err != nil {
		status, _ := kubectl(ctx, t, config, "get", "storageversionmigration/crontabs", "-o", "yaml")
		t.Fatalf("kubectl: %s, %v\n%s", out, err, status)
	}
	eventually(ctx, t, "the definition knows the new version alone", func() error {
		return stores(ctx, cluster, "v1")
	})
	// Without converter: what is stored as v1 is read as v1, if it is read from etcd, as by
	// name, and not from memory.
	stop()
	for i := range count {
		var got v1.CronTab
		err := cluster.Get(ctx, client.ObjectKey{Namespace: "default", Name: fmt.Sprintf("c%04d", i)}, &got)
		if err != nil || got.Spec.CronSpec != "0 3 * * *" || *got.Spec.Replicas != int32(1+i%10) {
			t.Fatalf("object %d is %+v, %v", i, got.Spec, err)
		}
	}
}
