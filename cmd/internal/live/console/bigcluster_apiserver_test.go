// SPDX-License-Identifier: Apache-2.0

package console

import (
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

var times = flag.Int("times", 1, "how many times 200 PodDefaults and 1,200 pods are in the big cluster")

// maxPage is how large a page may be, in bytes.
const maxPage = 100 << 10

// testBigCluster bounds what a page costs the API server and the console in a cluster with 300
// namespaces, and many PodDefaults and pods. Times are logged: they depend on the machine.
func testBigCluster(t *testing.T, w *world) {
	var group errgroup.Group
	group.SetLimit(16)
	create := func(o client.Object) {
		group.Go(func() error { return w.client.Create(t.Context(), o) })
	}
	wait := func() {
		t.Helper()
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	namespaces, podDefaults, pods := 300, 200**times, 1_200**times
	name := func(i int) string { return fmt.Sprintf("team-%d", i%namespaces) }
	for i := range namespaces {
		create(newNamespace(name(i)))
	}
	wait()
	for i := range podDefaults {
		o := newPodDefault(name(i), fmt.Sprintf("default-%d", i), "uses", "x")
		o.Spec.Annotations = nil
		create(o)
	}
	for i := range pods {
		namespace := name(i)
		if i < pods/2 {
			namespace = "team-0" // one team has half of them
		}
		create(newPod(namespace, fmt.Sprintf("pod-%d", i), map[string]string{"uses": "true"}, map[string]string{meta.Mark("default-0"): "1", "example.com/large": strings.Repeat("x", 4<<10)}))
	}
	wait()
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // the console's own; `make test` sets another
	for _, target := range []string{"/", "/poddefaults", "/poddefaults?namespace=team-0", "/webhooks", "/pod?namespace=team-0", "/pod?namespace=team-0&type=pod&name=pod-1", "/who?kind=Volume", "/try", "/rollouts", "/drift", "/exemptions", "/latency", "/upgrade", "/search?text=team-1"} {
		o := w.options("")
		var requests atomic.Int64
		runtime.GC() // what the page before left behind
		before := heap()
		o.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return counting(func(r *http.Request) (*http.Response, error) { requests.Add(1); return next.RoundTrip(r) })
		})
		most := peak(func() {
			start := time.Now()
			response, body := visitPage(t, o, localRequest(http.MethodGet, target, nil))
			if response.StatusCode != http.StatusOK {
				t.Fatalf("%s: status %d:\n%s", target, response.StatusCode, body)
			}
			if len(body) > maxPage {
				t.Errorf("%s has %d KB", target, len(body)>>10)
			}
			t.Logf("%s: %s, %d requests, %d KB", target, time.Since(start).Round(time.Millisecond), requests.Load(), len(body)>>10)
		})
		if requests.Load() > 60 {
			t.Errorf("%s takes %d requests", target, requests.Load())
		}
		if grown := most - min(most, before); grown > 64<<20 { // beside the program itself and what it loads
			t.Errorf("%s takes %d MiB", target, grown>>20)
		} else {
			t.Logf("%s: %d MiB", target, grown>>20)
		}
	}
}

type counting func(*http.Request) (*http.Response, error)

func (f counting) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// heap returns the bytes of objects, without stopping the program as [runtime.ReadMemStats] does.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// peak returns the largest heap during a call.
func peak(call func()) (most uint64) {
	done, sampled := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		for ticker := time.NewTicker(2 * time.Millisecond); ; {
			most = max(most, heap())
			select {
			case <-done:
				ticker.Stop()
				sampled <- most
				return
			case <-ticker.C:
			}
		}
	}()
	call()
	close(done)
	return <-sampled
}
