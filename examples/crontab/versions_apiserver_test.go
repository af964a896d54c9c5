// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sallyport-io/sallyport"
	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1alpha1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

func clientFor(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme, batchv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// definitionOf is the one of CronTabs in the cluster.
func definitionOf(ctx context.Context, cluster client.Client) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, cluster.Get(ctx, client.ObjectKey{Name: "crontabs.stable.example.com"}, crd)
}

// stores is an error if the definition has other stored versions.
func stores(ctx context.Context, cluster client.Client, versions ...string) error {
	crd, err := definitionOf(ctx, cluster)
	if err == nil && !slices.Equal(crd.Status.StoredVersions, versions) {
		err = fmt.Errorf("stored versions are %v", crd.Status.StoredVersions)
	}
	return err
}

// edit changes the definition, and returns when the API server has accepted it.
func edit(ctx context.Context, t *testing.T, cluster client.Client, change func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		crd, err := definitionOf(ctx, cluster)
		if err != nil {
			return err
		}
		change(crd)
		return cluster.Update(ctx, crd)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func setVersions(served, storage string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			version := &crd.Spec.Versions[i]
			version.Served = strings.Contains(served, version.Name)
			version.Storage = version.Name == storage
		}
	}
}

func schedule(minute, hour string) v1beta1.Schedule {
	return v1beta1.Schedule{Minute: minute, Hour: hour, DayOfMonth: "*", Month: "*", DayOfWeek: "*"}
}

func kubectl(ctx context.Context, t *testing.T, config *rest.Config, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+sallyporttest.Kubeconfig(t, config), "HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// The life of an API: stored as v1beta1 and read as v1 and the other way round, the
// oldest version served no more, another storage version, all objects migrated.
func TestVersionsOnARealAPIServer(t *testing.T) {
	t.Parallel()
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crd(t)))
	cluster := clientFor(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stop := start(t, config, freeport.For(t), operator(t), nil)

	old := &v1beta1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "old"},
		Spec: v1beta1.CronTabSpec{Schedule: schedule("*/5", "1")}}
	eventually(ctx, t, "a v1beta1 object gets the defaults of the webhook for v1", func() error {
		object := old.DeepCopy()
		if err := cluster.Create(ctx, object, client.DryRunAll); err != nil || object.Spec.Image != defaultImage {
			return fmt.Errorf("got %+v, %w", object.Spec, err)
		}
		bad := &v1beta1.CronTab{ObjectMeta: old.ObjectMeta}
		if err := cluster.Create(ctx, bad, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("without a schedule the answer is %w", err)
		}
		return nil
	})
	if err := cluster.Create(ctx, old.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	recent := cronTab(v1.CronTabSpec{CronSpec: "0 3  * * 1", Replicas: new(int32(2)), Image: "i"})
	recent.Name = "recent"
	if err := cluster.Create(ctx, recent); err != nil {
		t.Fatal(err)
	}

	var asV1 v1.CronTab
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(old), &asV1); err != nil || asV1.Spec.CronSpec != "*/5 1 * * *" || *asV1.Spec.Replicas != 1 {
		t.Errorf("v1 of what was stored as v1beta1 is %+v, %v", asV1.Spec, err)
	}
	var asBeta v1beta1.CronTab
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(recent), &asBeta); err != nil || asBeta.Spec.Schedule.Hour != "3" || asBeta.Spec.Schedule.DayOfWeek != "1" {
		t.Errorf("v1beta1 of what came as v1 is %+v, %v", asBeta.Spec, err)
	}
	for resource, want := range map[string]string{
		"crontabs.v1.stable.example.com":       "*/5 1 * * *,0 3  * * 1",
		"crontabs.v1alpha1.stable.example.com": "*/5 1 * * *,0 3  * * 1",
		"ct":                                   "*/5 1 * * *,0 3  * * 1", // the short name, in the newest version
	} {
		out, err := kubectl(ctx, t, config, "get", resource, "-n", "default", "--sort-by=.metadata.name", "-o", `jsonpath={.items[0].spec.cronSpec},{.items[1].spec.cronSpec}`)
		if err != nil || out != want {
			t.Errorf("kubectl get %s: %q, %v", resource, out, err)
		}
	}
	if out, err := kubectl(ctx, t, config, "get", "crontabs.v1beta1.stable.example.com", "recent", "-n", "default"); err != nil || !strings.Contains(out, "MINUTE") {
		t.Errorf("kubectl: %s, %v", out, err)
	}

	// An edit through the oldest version, which knows no replicas, loses none.
	var asAlpha v1alpha1.CronTab
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(recent), &asAlpha); err != nil {
		t.Fatal(err)
	}
	asAlpha.Spec.CronSpec = "7 3 * * 1"
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(recent), &asAlpha); err != nil {
			return err
		}
		asAlpha.Spec.CronSpec = "7 3 * * 1"
		return cluster.Update(ctx, &asAlpha)
	}); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(recent), &asV1); err != nil || asV1.Spec.CronSpec != "7 3 * * 1" || *asV1.Spec.Replicas != 2 {
		t.Errorf("after an edit through v1alpha1 it is %+v, %v", asV1.Spec, err)
	}

	edit(ctx, t, cluster, setVersions("v1beta1 v1", "v1"))
	eventually(ctx, t, "v1alpha1 is served no more, and new objects are stored as v1", func() error {
		out, err := kubectl(ctx, t, config, "get", "crontabs.v1alpha1.stable.example.com", "-n", "default")
		if err == nil {
			return errors.New(out)
		}
		return stores(ctx, cluster, "v1beta1", "v1")
	})
	migrate(ctx, t, cluster)

	// What is stored as v1 is read as v1 without anybody's help, and not as v1beta1.
	stop()
	for _, name := range []string{"old", "recent"} {
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &asV1); err != nil {
			t.Errorf("%s was not migrated: %v", name, err)
		}
	}
	out, err := kubectl(ctx, t, config, "get", "crontabs.v1beta1.stable.example.com", "old", "-n", "default")
	if err == nil || !strings.Contains(out, "conversion webhook for stable.example.com/v1, Kind=CronTab failed") {
		t.Errorf("without a converter kubectl says %q", out)
	}

	// A review beyond the limit of the server: who asks learns that, and which flag it is.
	start(t, config, freeport.For(t), operator(t), nil, func(s *sallyport.Settings) { s.Serving.MaxBodyBytes = 512 })
	eventually(ctx, t, "kubectl says that the review is too large", func() error {
		out, err := kubectl(ctx, t, config, "get", "crontabs.v1beta1.stable.example.com", "old", "-n", "default")
		if err == nil || !strings.Contains(out, "conversion webhook for stable.example.com/v1, Kind=CronTab failed") ||
			!strings.Contains(out, "the body exceeds the limit of 512 bytes (maxBodyBytes)") {
			return errors.New(out)
		}
		return nil
	})
}

// migrate is the loop of docs/conversion.md: every object is written as it is, which
// stores it in the storage version; then the definition is told.
func migrate(ctx context.Context, t *testing.T, cluster client.Client) {
	t.Helper()
	var list v1.CronTabList
	if err := cluster.List(ctx, &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		object := &list.Items[i]
		if err := cluster.Update(ctx, object); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // others have written it then
			t.Fatal(err)
		}
	}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		crd, err := definitionOf(ctx, cluster)
		if err != nil {
			return err
		}
		crd.Status.StoredVersions = []string{"v1"}
		return cluster.Status().Update(ctx, crd)
	}); err != nil {
		t.Fatal(err)
	}
}

var times = flag.Int("times", 1, "how many times 200 objects fill a cache")

// One replica starts cold: the definition has the stanza of one that is gone, with
// another authority, and the cache of the controller, on which readiness depends, needs
// objects that only this replica can convert.
func TestACacheOfConvertedObjectsDoesNotWaitForReadinessOnARealAPIServer(t *testing.T) {
	t.Parallel()
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crd(t)))
	cluster := clientFor(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	count := 200 * *times
	for i := range count {
		object := &v1beta1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("c%04d", i)},
			Spec: v1beta1.CronTabSpec{Schedule: schedule("0", "3")}}
		if err := cluster.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	port := freeport.For(t)
	edit(ctx, t, cluster, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new(fmt.Sprintf("https://127.0.0.1:%d/convert", port)), CABundle: config.CAData},
				ConversionReviewVersions: []string{"v1"},
			},
		}
	})
	eventually(ctx, t, "v1 cannot be read", func() error {
		if err := cluster.List(ctx, &v1.CronTabList{}); err == nil {
			return errors.New("it can")
		}
		return nil
	})

	var informer atomic.Pointer[toolscache.InformerSynced]
	converted := make(chan string, count)
	ready := make(chan struct{})
	app, err := sallyport.New("crontab",
		sallyport.WithScheme(cluster.Scheme()),
		sallyport.WithWebhooks(operator(t).Webhooks()...),
		sallyport.WithConverters(converter(t)),
		sallyport.WithController("cache", func(m manager.Manager) error {
			synced, err := m.GetCache().GetInformer(ctx, &v1.CronTab{}, cache.BlockUntilSynced(false))
			if err != nil {
				return err
			}
			_, err = synced.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
				select {
				case converted <- object.(*v1.CronTab).Spec.CronSpec:
				default:
				}
			}})
			informer.Store(new(toolscache.InformerSynced(synced.HasSynced)))
			return err
		}),
		sallyport.WithComponent(func(sallyport.Environment) (sallyport.Component, error) {
			return sallyport.Component{Name: "cache", Ready: func() error {
				if synced := informer.Load(); synced == nil || !(*synced)() {
					return errors.New("the cache is not filled yet")
				}
				select {
				case <-ready:
				default:
					close(ready)
				}
				return nil
			}}, nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	start(t, config, port, app, []string{"cache"})
	select {
	case <-ready:
	case <-ctx.Done():
		t.Fatal("it waits for itself: not ready, as the cache is not filled")
	}
	for range count {
		select {
		case line := <-converted:
			if line != "0 3 * * *" {
				t.Fatalf("the cache has %q", line)
			}
		case <-ctx.Done():
			t.Fatal("objects are missing in the cache")
		}
	}
	eventually(ctx, t, "the webhooks answer too", func() error {
		object := cronTab(v1.CronTabSpec{CronSpec: "0 3 * * *"})
		if err := cluster.Create(ctx, object, client.DryRunAll); err != nil || object.Spec.Image == "" {
			return fmt.Errorf("no defaults in %+v: %w", object.Spec, err)
		}
		return nil
	})
}
