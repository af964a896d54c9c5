// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/store"
)

// cacheName is the subcommand that reads all PodDefaults into a cache, and prints what that took.
const cacheName = "cache"

// The caches that hold the same of each PodDefault: its identity, and its spec as JSON.
const (
	ownStore          = "internal/store"
	controllerRuntime = "controller-runtime's cache with a transform"
)

var caches = []string{ownStore, controllerRuntime}

// A cacheRun is what it takes a new process to read all PodDefaults.
type cacheRun struct {
	Cache      string  `json:"cache"`
	Objects    int     `json:"objects"`
	Seconds    float64 `json:"seconds"` // until all are read
	CPUSeconds float64 `json:"cpuSeconds"`
	PeakRSSMiB float64 `json:"peakRSSMiB"`
	LiveMiB    float64 `json:"liveMiB"` // of the heap after a collection
}

// cache returns the medians of the runs with a cache.
func (s *scaled) cache(kind string) cacheRun {
	var seconds, cpu, peak, live []float64
	for _, run := range s.Caches {
		if run.Cache == kind {
			seconds, cpu = append(seconds, run.Seconds), append(cpu, run.CPUSeconds)
			peak, live = append(peak, run.PeakRSSMiB), append(live, run.LiveMiB)
		}
	}
	return cacheRun{Cache: kind, Seconds: median(seconds), CPUSeconds: median(cpu), PeakRSSMiB: median(peak), LiveMiB: median(live)}
}

// fillCache has a new process of this binary read all PodDefaults.
func (s *site) fillCache(ctx context.Context, kind string) (run cacheRun, err error) {
	self, err := os.Executable()
	if err != nil {
		return run, err
	}
	command := exec.CommandContext(ctx, self, cacheName, "-kubeconfig", s.cp.Kubeconfig, "-kind", kind)
	command.Env = append(os.Environ(), "GOGC=")
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return run, fmt.Errorf("%w\n%s", err, failed.Stderr)
	}
	if err == nil {
		err = json.Unmarshal(out, &run)
	}
	return run, err
}

// readIntoCache is the subcommand.
func readIntoCache(args []string) error {
	flags := flag.NewFlagSet(cacheName, flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "file")
	kind := flags.String("kind", "", "of the cache")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	read := map[string]func(context.Context, *rest.Config) (int, error){ownStore: readIntoStore, controllerRuntime: readIntoControllerRuntime}[*kind]
	if read == nil {
		return fmt.Errorf("no cache %q", *kind)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	started := time.Now()
	objects, err := read(ctx, config)
	if err != nil {
		return err
	}
	run := cacheRun{Cache: *kind, Objects: objects, Seconds: time.Since(started).Seconds()}
	used, err := cpuTime(os.Getpid())
	peak, errPeak := peakRSS(os.Getpid())
	run.CPUSeconds, run.PeakRSSMiB = used.Seconds(), mebibytes(peak)
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	run.LiveMiB = float64(memory.HeapAlloc) / (1 << 20)
	runtime.KeepAlive(held)
	return errors.Join(err, errPeak, json.NewEncoder(os.Stdout).Encode(run))
}

// held keeps a cache until its memory is measured.
var held any

// A kept PodDefault is what both caches hold.
type kept struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	spec []byte
}

// Identity implements [store.Object].
func (k *kept) Identity() store.Identity {
	return store.Identity{NamespacedName: types.NamespacedName{Namespace: k.Namespace, Name: k.Name}, UID: k.UID, ResourceVersion: k.ResourceVersion}
}

// DeepCopyObject implements [client.Object]. What is kept does not change.
func (k *kept) DeepCopyObject() apiruntime.Object {
	out := *k
	return &out
}

func keep(pd *v1alpha1.PodDefault) *kept {
	spec, err := json.Marshal(&pd.Spec)
	if err != nil { // it was decoded from JSON
		spec = nil
	}
	return &kept{ObjectMeta: metav1.ObjectMeta{Namespace: pd.Namespace, Name: pd.Name, UID: pd.UID, ResourceVersion: pd.ResourceVersion}, spec: spec}
}

func readIntoStore(ctx context.Context, config *rest.Config) (int, error) {
	factory := store.NewFactory(config, slog.New(slog.DiscardHandler))
	connection, err := store.Client(factory.Config(), v1alpha1.GroupVersion, v1alpha1.AddToScheme)
	if err != nil {
		return 0, err
	}
	all := store.Follow(factory, store.Kind[*v1alpha1.PodDefault, *kept]{
		Name: v1alpha1.PodDefaultResource, Example: &v1alpha1.PodDefault{}, Keep: keep,
		From: store.Source(connection, v1alpha1.PodDefaultResource, &v1alpha1.PodDefault{}),
	})
	held = all
	go all.Run(ctx)
	select {
	case <-all.Synced():
		return all.Len(), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func readIntoControllerRuntime(ctx context.Context, config *rest.Config) (int, error) {
	all, err := cache.New(config, cache.Options{
		Scheme: podDefaultScheme(),
		ByObject: map[client.Object]cache.ByObject{&v1alpha1.PodDefault{}: {Transform: func(object any) (any, error) {
			if pd, ok := object.(*v1alpha1.PodDefault); ok {
				return keep(pd), nil
			}
			return object, nil
		}}},
	})
	if err != nil {
		return 0, err
	}
	held = all
	go func() { _ = all.Start(ctx) }()
	informer, err := all.GetInformer(ctx, &v1alpha1.PodDefault{})
	if err != nil {
		return 0, err
	}
	objects := 0
	registration, err := informer.AddEventHandler(counting(&objects))
	if err != nil {
		return 0, err
	}
	for !registration.HasSynced() {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return objects, nil
}

// counting counts the objects of a cache. It is called by one goroutine at a time.
func counting(objects *int) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { *objects++ }}
}
